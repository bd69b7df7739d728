// Events of a running agent, folded for display: consecutive pieces of text become one
// text, and a call and its result become one call.

export interface Event {
  offsetKey: string;
  kind: string;
  text: string;
  tool: string;
  callId: string;
  path: string;
  status: string;
  added: number;
  removed: number;
  diff: string;
  seq: bigint;
}

export interface Item {
  key: string;
  kind: string;
  text: string;
  tool: string;
  callId: string;
  path: string;
  status: string;
  added: number;
  removed: number;
  diff: string;
}

export interface Log {
  items: Item[];
  /** Where to resume after a lost connection. */
  offset: string;
  seq: bigint;
  status: string;
  /** The number of events. */
  events: number;
}

export const emptyLog: Log = { items: [], offset: "", seq: 0n, status: "", events: 0 };

/** most limits what is kept: an open page must not grow forever. */
const most = 2000;

/** fold adds an event. The log is not changed; a new one is returned. */
export function fold(log: Log, e: Event): Log {
  if (e.kind === "restarted") {
    // The store has a different history: the events shown are not part of it.
    return { ...emptyLog, items: [note("restarted", `r${log.events}`, "The log was replaced. Showing the current state.")] };
  }
  if (e.kind === "resumed") {
    const text = `Reconnected after event ${e.seq}. No events were missed.`;
    return { ...log, items: [...log.items, note("resumed", `c${log.events}-${log.items.length}`, text)] };
  }
  if (e.seq !== 0n && e.seq <= log.seq) return log; // already shown
  const next: Log = { ...log, offset: e.offsetKey || log.offset, seq: e.seq || log.seq, events: log.events + (e.kind === "beat" ? 0 : 1) };
  if (e.kind === "status") next.status = e.status;
  if (e.kind === "beat" || e.kind === "state") return next;
  const last = log.items[log.items.length - 1];
  if ((e.kind === "text" || e.kind === "thinking") && last?.kind === e.kind) {
    next.items = [...log.items.slice(0, -1), { ...last, text: last.text + e.text }];
    return next;
  }
  if (e.kind === "tool" && e.callId) {
    const i = log.items.findLastIndex((x) => x.kind === "tool" && x.callId === e.callId);
    if (i >= 0) {
      next.items = log.items.map((x, n) => (n === i ? { ...itemOf(e), key: x.key } : x));
      return next;
    }
  }
  if (e.kind === "status" && last?.kind === "status" && last.status === e.status) return next;
  next.items = [...log.items, itemOf(e)].slice(-most);
  return next;
}

function itemOf(e: Event): Item {
  const { kind, text, tool, callId, path, status, added, removed, diff } = e;
  return { key: `e${e.seq}`, kind, text, tool, callId, path, status, added, removed, diff };
}

function note(kind: string, key: string, text: string): Item {
  return { key, kind, text, tool: "", callId: "", path: "", status: "", added: 0, removed: 0, diff: "" };
}

/** pause is how long to wait before the n-th attempt to connect again. */
export function pause(attempt: number): number {
  return Math.min(250 * 2 ** Math.max(0, attempt - 1), 5000);
}
