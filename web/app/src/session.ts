import { signal } from "@preact/signals";

// The token stays in sessionStorage, which belongs to this scheme, host and port and
// ends with the tab. A cookie would go to every other server on this machine, since
// cookies do not know ports.
const key = "stet.token";

/** A token as stet makes them; other fragments are places on the page. */
const shape = /^[A-Za-z0-9_-]{32,200}$/;

/** State of the session: what the page shows depends on it. */
export type State = "looking" | "open" | "closed";

export const state = signal<State>("looking");

let token = sessionStorage.getItem(key) ?? "";

/** bearer is the token that calls carry, or empty. */
export const bearer = (): string => token;

function keep(value: string): void {
  token = value;
  if (value) sessionStorage.setItem(key, value);
  else sessionStorage.removeItem(key);
}

/** close forgets the token, after the server refused it. */
export function close(): void {
  keep("");
  state.value = "closed";
}

// Tabs of this page hand the token on, so that a link opens in a new tab without
// another login. A channel reaches pages of the same scheme, host and port only.
const tabs = new BroadcastChannel("stet.session");

/** listen answers other tabs, and takes what they hand on, also while the login is
 * shown: a busy tab may answer late. */
function listen(check: () => Promise<Verdict>): void {
  tabs.onmessage = (e: MessageEvent<{ ask?: boolean; token?: string }>) => {
    if (e.data.ask && token && state.value === "open") tabs.postMessage({ token });
    if (e.data.token && state.value !== "open") void open(e.data.token, check);
  };
}

/** patience is how long a new tab waits for another one before it shows the login. */
const patience = 250;

/** fromHash takes the token out of the address, where stet serve prints it behind
 * the '#': no server and no log sees that part. */
function fromHash(): string {
  const given = location.hash.slice(1);
  if (!shape.test(given)) return "";
  history.replaceState(history.state, "", location.pathname + location.search);
  return given;
}

/** Answer of the server about a token. */
export type Verdict = "open" | "refused" | "away";

/** open tries a token and keeps it where the server takes it. */
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

/** start finds a token: in the address, in this tab, in another tab. A server that
 * wants none takes the empty one. */
export async function start(check: () => Promise<Verdict>): Promise<void> {
  listen(check);
  addEventListener("hashchange", () => {
    const given = fromHash();
    if (given) void open(given, check);
  });
  for (const value of new Set([fromHash(), token, ""])) {
    const verdict = await open(value, check);
    if (verdict === "away" && value) {
      keep(value); // the page says that the server does not answer, and goes on when it does
      state.value = "open";
    }
    if (verdict === "open" || state.value === "open") return;
  }
  keep("");
  tabs.postMessage({ ask: true });
  setTimeout(() => state.value === "looking" && close(), patience);
}
