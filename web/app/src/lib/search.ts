// Hits of a search: grouped by conversation, each message once, with a readable excerpt.

import { marked } from "./format.ts";

export interface Hit {
  conversation: string;
  title: string;
  turn: number;
  messageId: string;
  snippet: string;
  timeMs: bigint;
}

/** Found is a hit, with the other conversations that have the same message: forks. */
export interface Found<T> {
  hit: T;
  also: { conversation: string; title: string }[];
}

export interface Group<T> {
  conversation: string;
  title: string;
  /** The hit in the title, or undefined. */
  inTitle: T | undefined;
  found: Found<T>[];
}

/** groups puts hits together by conversation, the best one first. A message that forks
 * have in common is listed once, where most was found; the other places are named. */
export function groups<T extends Hit>(hits: readonly T[]): Group<T>[] {
  const count = new Map<string, number>();
  for (const h of hits) count.set(h.conversation, (count.get(h.conversation) ?? 0) + 1);
  const better = (a: T, b: T) => (count.get(b.conversation)! - count.get(a.conversation)! || (a.conversation < b.conversation ? -1 : 1)) < 0;
  const same = new Map<string, T[]>();
  for (const h of hits) {
    const key = h.turn > 0 ? `${h.turn} ${h.messageId} ${h.snippet}` : `title ${h.conversation}`;
    const list = same.get(key);
    if (!list) same.set(key, [h]);
    else if (list.some((o) => o.conversation === h.conversation)) same.set(`${key} ${same.size}`, [h]);
    else list.push(h);
  }
  const out = new Map<string, Group<T>>();
  const groupOf = (h: T) => {
    let g = out.get(h.conversation);
    if (!g) out.set(h.conversation, (g = { conversation: h.conversation, title: h.title, inTitle: undefined, found: [] }));
    return g;
  };
  for (const list of same.values()) {
    const hit = list.reduce((best, h) => (better(h, best) ? h : best));
    const group = groupOf(hit);
    if (hit.turn === 0) group.inTitle = hit;
    else group.found.push({ hit, also: list.filter((h) => h !== hit).map(({ conversation, title }) => ({ conversation, title })) });
  }
  return [...out.values()];
}

export interface Piece {
  text: string;
  hit: boolean;
  code: boolean;
  bold: boolean;
}

const headers = /(?:^|(?<=\s))(?:---|\+\+\+) (?:[ab]\/\S*|\/dev\/null)\s*|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@\s*/g;

/** excerpt formats the text around a match: code and emphasis instead of their marks, and
 * diffs without their headers. What a tool was asked and answered is code. */
export function excerpt(text: string, offsets: readonly number[], tool = false): Piece[] {
  const parts = marked(text, offsets);
  const whole = parts.map((p) => p.text).join("");
  const hit = parts.flatMap((p) => Array<boolean>(p.text.length).fill(p.hit));
  const shown = Array<boolean>(whole.length).fill(true);
  const isDiff = /@@ -\d+(,\d+)? \+\d+(,\d+)? @@/.test(whole);
  const code = Array<boolean>(whole.length).fill(isDiff || tool);
  const bold = Array<boolean>(whole.length).fill(false);
  const hide = (from: number, to: number) => shown.fill(false, from, to);
  if (isDiff || tool) {
    for (const m of whole.matchAll(headers)) hide(m.index, m.index + m[0].length);
  } else {
    for (const m of whole.matchAll(/(`+)([^`]+)(?:\1|$)/g)) {
      // The excerpt may end inside of code, and a block begins with its language.
      const n = m[1].length;
      const from = m.index;
      const open = n + (n > 2 ? /^\w*\s*/.exec(m[2])![0].length : 0);
      const closed = m[0].length > n + m[2].length;
      const to = from + m[0].length;
      hide(from, from + open);
      if (!closed) {
        code.fill(true, from + open, to);
        continue;
      }
      hide(to - n, to);
      code.fill(true, from + open, to - n);
    }
    for (const m of whole.matchAll(/\[([^[\]]+)\]\([^()\s]*\)/g)) {
      if (code[m.index]) continue;
      hide(m.index, m.index + 1);
      hide(m.index + 1 + m[1].length, m.index + m[0].length);
    }
    for (const m of whole.matchAll(/\*\*([^*]+)\*\*/g)) {
      const [from, to] = [m.index, m.index + m[0].length];
      if (code[from]) continue;
      hide(from, from + 2);
      hide(to - 2, to);
      bold.fill(true, from + 2, to - 2);
    }
    for (const m of whole.matchAll(/(^|\s)#{1,6} /g)) if (!code[m.index]) hide(m.index + m[1].length, m.index + m[0].length);
  }
  const out: Piece[] = [];
  for (let i = 0; i < whole.length; i++) {
    if (!shown[i]) continue;
    const last = out[out.length - 1];
    if (last && last.hit === hit[i] && last.code === code[i] && last.bold === bold[i]) last.text += whole[i];
    else out.push({ text: whole[i], hit: hit[i], code: code[i], bold: bold[i] });
  }
  return out;
}
