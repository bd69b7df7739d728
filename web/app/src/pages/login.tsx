import { useState } from "preact/hooks";
import { check } from "../api.ts";
import { open } from "../session.ts";

/** Login asks for the token. */
export function Login() {
  const [said, say] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const field = (e.currentTarget as HTMLFormElement).elements.namedItem("token") as HTMLInputElement;
    say("");
    setBusy(true);
    const verdict = await open(field.value.trim(), check);
    setBusy(false);
    if (verdict === "refused") say("This server does not accept that token.");
    if (verdict === "away") say("The server does not answer. Is stet serve still running?");
  };
  return (
    <main class="login">
      <h1>stet</h1>
      <p>
        Open the address that <code>stet serve</code> printed, or paste the token from the file that it names.
      </p>
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input id="token" name="token" type="password" autocomplete="off" required autofocus />
        <button disabled={busy}>Log in</button>
        <p role="status">{said}</p>
      </form>
    </main>
  );
}
