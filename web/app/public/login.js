// Turns the token behind the # of the address, which no server and no log ever
// sees, into a cookie that no script can read.
const form = document.getElementById("login");
async function login(token) {
  const res = await fetch("/login", { method: "POST", body: new URLSearchParams({ token }) });
  if (res.ok) {
    location.reload(); // of the same address, which may be a link to something
    return;
  }
  document.getElementById("said").textContent = "That is not the token of this server.";
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  login(document.getElementById("token").value.trim());
});
const given = location.hash.slice(1);
if (given) {
  history.replaceState(null, "", location.pathname + location.search);
  login(given);
}
