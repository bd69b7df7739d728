// Where lines came from, as the gutter shows it.
import { clock, oneLine } from "./format.ts";

/** Origin is a change that lines began with; see the message BlameOrigin. */
export interface Origin {
  kind: string;
  why: string;
  checkpoint: string;
  name: string;
  place: string;
  timeMs: bigint;
  conversation: string;
  turn: number;
  agent: string;
  model: string;
  prompt: string;
  tool: string;
  among: readonly string[];
}

export interface Call {
  number: number;
  tool: string;
  command: string;
}

interface Range {
  line: number;
  lines: number;
  origin: number;
  call?: Call;
}

/** Mark is what the gutter says about lines beside each other. */
export interface Mark {
  line: number;
  lines: number;
  origin: Origin;
  call?: Call;
}

/** marks joins ranges of the same change: where a line was then does not matter here. */
export function marks(ranges: readonly Range[], origins: readonly Origin[]): Mark[] {
  const out: Mark[] = [];
  for (const r of ranges) {
    const last = out[out.length - 1];
    const origin = origins[r.origin];
    if (last && last.origin === origin && last.call?.number === r.call?.number) last.lines += r.lines;
    else out.push({ line: r.line, lines: r.lines, origin, call: r.call });
  }
  return out;
}

/** markOf finds the mark of a line, from 1. */
export function markOf(all: readonly Mark[], line: number): Mark | undefined {
  let [low, high] = [0, all.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const m = all[middle];
    if (line < m.line) high = middle - 1;
    else if (line >= m.line + m.lines) low = middle + 1;
    else return m;
  }
  return undefined;
}

const reasons: Record<string, string> = {
  "before-the-first-checkpoint": "there at the first checkpoint",
  forgotten: "no longer kept",
  "not-captured": "while not captured",
  "interrupted-turn": "after an interrupted turn",
  merged: "merged by a rewind",
};

/** author names who wrote lines. */
export function author(o: Origin): string {
  if (o.kind === "you") return "you";
  if (o.kind === "agent") return o.agent || o.conversation;
  return o.kind === "several" ? "one of several" : "unknown";
}

/** place says when lines were written. */
export function place(o: Origin): string {
  if (o.kind === "unknown") return reasons[o.why] ?? o.why;
  if (o.kind === "agent" && o.turn > 0) return `turn ${o.turn}`;
  return o.checkpoint ? o.place : "not saved yet";
}

/** short is the label of a mark in the gutter. */
export function short(o: Origin): string {
  return [o.name || "now", author(o), o.kind === "you" ? "" : place(o)].filter(Boolean).join(" ");
}

/** about says everything that is known about a mark in one line. */
export function about(m: Mark): string {
  const o = m.origin;
  const tool = m.call ? `call ${m.call.number}: ${m.call.tool}${m.call.command ? ` ${oneLine(m.call.command, 80)}` : ""}` : o.tool;
  const time = o.timeMs > 0n ? clock(Number(o.timeMs)) : "";
  const lines = m.lines > 1 ? `lines ${m.line}–${m.line + m.lines - 1}` : `line ${m.line}`;
  return [lines, o.name, time, author(o), o.model, place(o), o.prompt && `“${oneLine(o.prompt, 120)}”`, tool].filter(Boolean).join(" · ");
}

/** shade numbers the colour of an origin, from 1; 0 for those that no agent wrote. */
export function shade(o: Origin): number {
  if (o.kind !== "agent") return 0;
  let sum = 0;
  for (const c of o.conversation) sum = (sum * 31 + c.charCodeAt(0)) >>> 0;
  return (sum % 6) + 1;
}
