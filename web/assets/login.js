// Turns the token behind the # of the address, which no server and no log ever
// sees, into a cookie that no script can read.
const form = document.getElementById("login");
async function login(token) {
  const res = await fetch("/login", { method: "POST", body: new URLSearchParams({ token }) });
  if (res.ok) {
    location.replace("/");
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
  history.replaceState(null, "", location.pathname);
  login(given);
}
