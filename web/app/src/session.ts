import { signal } from "@preact/signals";

// The token stays in sessionStorage, which belongs to this scheme, host and port and
// ends with the tab. A cookie would be sent to every other server on this machine,
// because cookies ignore ports.
const key = "stet.token";

/** The form of a stet token; other fragments are anchors on the page. */
const shape = /^[A-Za-z0-9_-]{32,200}$/;

/** State of the session: what the page shows depends on it. */
export type State = "looking" | "open" | "closed";

export const state = signal<State>("looking");

let token = sessionStorage.getItem(key) ?? "";

/** bearer is the token sent with calls, or empty. */
export const bearer = (): string => token;

function keep(value: string): void {
  token = value;
  if (value) sessionStorage.setItem(key, value);
  else sessionStorage.removeItem(key);
}

/** close drops the token after the server refused it. */
export function close(): void {
  keep("");
  state.value = "closed";
}

// Tabs of this page share the token, so that a link opens in a new tab without
// another login. A channel reaches only pages of the same scheme, host and port.
const tabs = new BroadcastChannel("stet.session");

/** listen answers other tabs and accepts their token, even while the login is
 * shown: a busy tab may answer late. */
function listen(check: () => Promise<Verdict>): void {
  tabs.onmessage = (e: MessageEvent<{ ask?: boolean; token?: string }>) => {
    if (e.data.ask && token && state.value === "open") tabs.postMessage({ token });
    if (e.data.token && state.value !== "open") void open(e.data.token, check);
  };
}

/** patience is how long a new tab waits for another one before it shows the login. */
const patience = 250;

/** fromHash takes the token from the address, where stet serve prints it after the
 * '#': no server and no log sees that part. */
function fromHash(): string {
  const given = location.hash.slice(1);
  if (!shape.test(given)) return "";
  history.replaceState(history.state, "", location.pathname + location.search);
  return given;
}

/** The server's answer about a token. */
export type Verdict = "open" | "refused" | "away";

/** open tries a token and keeps it if the server accepts it. */
export async function open(value: string, check: () => Promise<Verdict>): Promise<Verdict> {
  const before = token;
  token = value;
  const verdict = await check();
  if (verdict === "open") {
    keep(value);
    state.value = "open";
  } else {
    token = before;
  }
  return verdict;
}

/** start finds a token: in the address, in this tab, in another tab. A server without
 * tokens accepts the empty one. */
export async function start(check: () => Promise<Verdict>): Promise<void> {
  listen(check);
  addEventListener("hashchange", () => {
    const given = fromHash();
    if (given) void open(given, check);
  });
  for (const value of new Set([fromHash(), token, ""])) {
    const verdict = await open(value, check);
    if (verdict === "away" && value) {
      keep(value); // the page reports that the server does not answer, and reconnects
      state.value = "open";
    }
    if (verdict === "open" || state.value === "open") return;
  }
  keep("");
  tabs.postMessage({ ask: true });
  setTimeout(() => state.value === "looking" && close(), patience);
}
