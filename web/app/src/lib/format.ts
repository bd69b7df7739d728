// Formatting for the page. All functions are pure.

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** ago formats how long ago something was, briefly. */
export function ago(ms: number, now: number): string {
  const age = now - ms;
  if (age < -minute) return "in the future";
  if (age < 10_000) return "just now";
  if (age < minute) return `${Math.floor(age / 1000)} s ago`;
  if (age < hour) return `${Math.floor(age / minute)} min ago`;
  if (age < day) return `${Math.floor(age / hour)} h ago`;
  if (age < 30 * day) return count(Math.floor(age / day), "day") + " ago";
  if (age < 365 * day) return count(Math.floor(age / (30 * day)), "month") + " ago";
  return count(Math.floor(age / (365 * day)), "year") + " ago";
}

/** duration formats how long something took. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  const and = (n: number, unit: string) => (n > 0 ? ` ${n} ${unit}` : "");
  if (s < 3600) return `${Math.floor(s / 60)} min${and(s % 60, "s")}`;
  return `${Math.floor(s / 3600)} h${and(Math.floor((s % 3600) / 60), "min")}`;
}

/** tokens formats how much of a model's context was used, out of a limit or 0. */
export function tokens(used: number, limit: number): string {
  const k = (n: number) => (n < 1000 ? String(n) : `${n < 10_000 ? (n / 1000).toFixed(1) : Math.round(n / 1000)}k`);
  return limit > 0 ? `${k(used)} of ${k(limit)} tokens` : `${k(used)} tokens`;
}

/** tokenCount formats a number of tokens, such as 12.3k; empty for none. */
export function tokenCount(n: number | bigint): string {
  const v = Number(n);
  if (v <= 0) return "";
  if (v < 1000) return String(v);
  return v < 999_950 ? `${(v / 1e3).toFixed(1)}k` : `${(v / 1e6).toFixed(1)}M`;
}

/** cost formats dollars; empty where they are not known. */
export function cost(usd: number | undefined): string {
  if (usd === undefined || usd <= 0) return "";
  return usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

/** modelName shortens the name of a model: without the day on which it was made. */
export function modelName(model: string): string {
  return oneLine(model.replace(/-20\d{6}$/, ""), 40);
}

/** Spent is what turns took; see the message of that name. */
export interface Spent {
  model: string;
  inputTokens: bigint;
  outputTokens: bigint;
  cacheReadTokens: bigint;
  cacheWriteTokens: bigint;
  costUsd?: number;
  durationMs: bigint;
}

/** spentWords says what turns took, as far as it is known. */
export function spentWords(s: Spent | undefined): string[] {
  if (!s) return [];
  const read = tokenCount(s.inputTokens + s.outputTokens + s.cacheReadTokens + s.cacheWriteTokens);
  return [modelName(s.model), read && `${read} tokens`, cost(s.costUsd), s.durationMs > 0n ? duration(Number(s.durationMs)) : ""].filter(Boolean);
}

/** clock is the time of day. */
export function clock(ms: number): string {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** stamp is the whole date and time, in local time, as it sorts. */
export function stamp(ms: number): string {
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}:${two(d.getSeconds())}`;
}

const two = (n: number) => String(n).padStart(2, "0");

/** dayName names a day: today, yesterday, a weekday or a date. */
export function dayName(ms: number, now: number): string {
  const then = startOfDay(ms);
  const days = Math.round((startOfDay(now) - then) / day);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  const d = new Date(then);
  if (days > 1 && days < 7) return d.toLocaleDateString("en", { weekday: "long" });
  return d.toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" });
}

/** startOfDay is the midnight before, in local time. */
export function startOfDay(ms: number): number {
  const d = new Date(ms);
  d.setHours(0, 0, 0, 0);
  return d.getTime();
}

/** bytes formats a size. */
export function bytes(n: number | bigint): string {
  let v = Number(n);
  if (Math.abs(v) < 1024) return `${v} B`;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    v /= 1024;
    if (Math.abs(v) < 1024 || unit === "TiB") return `${v < 10 ? v.toFixed(1) : Math.round(v)} ${unit}`;
  }
  return "";
}

/** count formats a number of things. */
export function count(n: number | bigint, thing: string): string {
  return `${grouped(n)} ${thing}${Number(n) === 1 ? "" : "s"}`;
}

/** grouped formats a number with thin spaces. */
export function grouped(n: number | bigint): string {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** ratio formats how many times larger a is than b. */
export function ratio(a: number, b: number): string {
  if (b <= 0 || a <= 0) return "–";
  const r = a / b;
  return `${r < 10 ? r.toFixed(1) : Math.round(r)}×`;
}

/** hex formats bytes as hexadecimal digits. */
export function hex(data: Uint8Array): string {
  let out = "";
  for (const b of data) out += b.toString(16).padStart(2, "0");
  return out;
}

/** unhex is the inverse of hex; null for invalid input. */
export function unhex(text: string): Uint8Array | null {
  if (text.length % 2 !== 0 || /[^0-9a-f]/i.test(text)) return null;
  const out = new Uint8Array(text.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return out;
}

/** short shortens an id for display. */
export function short(id: string, n = 10): string {
  return id.length > n ? id.slice(0, n) : id;
}

/** baseName is the last part of a path. */
export function baseName(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts[parts.length - 1] ?? path;
}

/** oneLine joins the lines of a text. */
export function oneLine(text: string, most = 160): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? line.slice(0, most - 1) + "…" : line;
}

/** marked cuts a text at pairs of byte offsets, in UTF-8, into parts that match or not. */
export function marked(text: string, offsets: readonly number[]): { text: string; hit: boolean }[] {
  const raw = new TextEncoder().encode(text);
  const decode = (from: number, to: number) => new TextDecoder().decode(raw.subarray(from, to));
  const parts: { text: string; hit: boolean }[] = [];
  let at = 0;
  for (let i = 0; i + 1 < offsets.length; i += 2) {
    const [from, to] = [Math.min(offsets[i], raw.length), Math.min(offsets[i + 1], raw.length)];
    if (from < at || to <= from) continue;
    if (from > at) parts.push({ text: decode(at, from), hit: false });
    parts.push({ text: decode(from, to), hit: true });
    at = to;
  }
  if (at < raw.length) parts.push({ text: decode(at, raw.length), hit: false });
  return parts;
}
