// Turns the token behind the # of the address, which no server and no log ever
// sees, into a cookie that no script can read.
const form = document.getElementById("login");
async function login(token) {
  const said = document.getElementById("said");
  said.textContent = "";
  try {
    const res = await fetch("/login", { method: "POST", body: new URLSearchParams({ token }) });
    if (res.ok) {
      location.reload(); // of the same address, which may be a link to something
      return;
    }
    said.textContent = res.status === 401 ? "That is not the token of this server." : `The server cannot check the token now (${res.status}). Try again in a moment.`;
  } catch {
    said.textContent = "The server does not answer. Is stet serve still running?";
  }
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  login(document.getElementById("token").value.trim());
});
// A link that is pasted over this page's own address changes only the hash.
function fromHash() {
  const given = location.hash.slice(1);
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    login(given);
  }
}
addEventListener("hashchange", fromHash);
fromHash();
