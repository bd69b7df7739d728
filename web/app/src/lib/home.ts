// Conversations by day and by workspace.

import { baseName, dayName, startOfDay } from "./format.ts";

export interface Listed {
  workspace: string;
  updatedMs: bigint;
  /** The conversation that started this one as a subagent, or empty. */
  subagentOf?: string;
}

export type Line<T> = { kind: "day"; name: string; key: string } | { kind: "place"; name: string; path: string; key: string } | { kind: "row"; row: T; key: string; depth: number } | { kind: "fold"; of: string; count: number; key: string; depth: number };

/** families maps conversations to their subagents in the list, oldest first. */
function families<T extends Row>(rows: readonly T[]): Map<string, T[]> {
  const ids = new Set(rows.map((r) => r.id));
  const found = new Map<string, T[]>();
  for (const row of rows) {
    const parent = row.subagentOf;
    if (parent && parent !== row.id && ids.has(parent)) found.set(parent, [row, ...(found.get(parent) ?? [])]);
  }
  return found;
}

/** How the list is arranged. */
export interface Arrangement {
  group: "day" | "project" | "agent" | "none";
  sort: Column;
  /** Whether the smallest comes first. */
  up: boolean;
}

export type Column = "title" | "agent" | "model" | "turns" | "changed" | "size" | "when";

/** Row is what an arrangement looks at. */
export interface Row extends Listed {
  id: string;
  title?: string;
  agent?: string;
  model?: string;
  turns?: number;
  added?: number;
  removed?: number;
}

export const byDay: Arrangement = { group: "day", sort: "when", up: false };

/** values compares rows by a column. */
const values: Record<Column, (r: Row, size: number) => string | number> = {
  title: (r) => (r.title ?? "").toLowerCase(),
  agent: (r) => r.agent ?? "",
  model: (r) => r.model ?? "",
  turns: (r) => r.turns ?? 0,
  changed: (r) => (r.added ?? 0) + (r.removed ?? 0),
  size: (_, size) => size,
  when: (r) => Number(r.updatedMs),
};

/** sortRows orders rows by a column; equal ones stay in their order. */
export function sortRows<T extends Row>(rows: readonly T[], how: Arrangement, sizes?: ReadonlyMap<string, bigint>): T[] {
  const of = (r: T) => values[how.sort](r, Number(sizes?.get(r.id) ?? 0));
  const sign = how.up ? 1 : -1;
  return rows
    .map((row, i) => ({ row, i, value: of(row) }))
    .sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : a.i - b.i))
    .map((x) => x.row);
}

/** grouped adds headings between rows, which are sorted by last change, newest first, and
 * are sorted by the chosen column within each group. Subagents are below the conversation
 * that started them, if that is in the set of unfolded ones; otherwise a line counts them. */
export function grouped<T extends Row>(rows: readonly T[], now: number, unfolded: ReadonlySet<string> = new Set(), how: Arrangement = byDay, sizes?: ReadonlyMap<string, bigint>): Line<T>[] {
  const below = families(rows);
  const folded = new Set([...below.values()].flat().map((r) => r.id));
  const top = rows.filter((r) => !folded.has(r.id));
  const lines: Line<T>[] = [];
  const add = (list: readonly T[]) => {
    for (const row of how.sort === "when" && !how.up ? list : sortRows(list, how, sizes)) addRow(lines, row, below, unfolded, 0);
  };
  const place = (path: string, key: string): Line<T> => ({ kind: "place", name: path ? baseName(path) : "no workspace", path, key });
  switch (how.group) {
    case "none":
      add(top);
      break;
    case "project":
      for (const [path, list] of partition(top, (r) => r.workspace)) {
        lines.push(place(path, `p${path}`));
        add(list);
      }
      break;
    case "agent":
      for (const [agent, list] of partition(top, (r) => r.agent ?? "")) {
        lines.push({ kind: "day", name: agent || "no agent", key: `a${agent}` });
        add(list);
      }
      break;
    case "day":
      for (const [day, list] of partition(top, (r) => startOfDay(Number(r.updatedMs)))) {
        lines.push({ kind: "day", name: dayName(day, now), key: `d${day}` });
        for (const [path, part] of partition(list, (r) => r.workspace)) {
          lines.push(place(path, `p${day}${path}`));
          add(part);
        }
      }
  }
  return lines;
}

/** partition splits rows by a value, in the order in which the values come. */
function partition<T, K>(rows: readonly T[], by: (row: T) => K): Map<K, T[]> {
  const out = new Map<K, T[]>();
  for (const row of rows) {
    const list = out.get(by(row));
    if (list) list.push(row);
    else out.set(by(row), [row]);
  }
  return out;
}

/** isEmptyRun reports whether nothing was said or changed: nothing at all, or a command
 * that changed no file. A run of a command has the command as its title. */
export function isEmptyRun(r: { title: string; agent: string; turns: number; files: number; checkpoints: number; model: string; parent: string }): boolean {
  if (r.files > 0 || r.parent) return false;
  if (r.turns === 0) return r.checkpoints === 0;
  return r.turns === 1 && !r.model && baseName(r.title.split(" ")[0]) === r.agent;
}

function addRow<T extends Row>(lines: Line<T>[], row: T, below: Map<string, T[]>, unfolded: ReadonlySet<string>, depth: number): void {
  const subagents = below.get(row.id) ?? [];
  lines.push({ kind: "row", row, key: row.id, depth });
  if (subagents.length > 0) lines.push({ kind: "fold", of: row.id, count: subagents.length, key: `f${row.id}`, depth });
  if (!unfolded.has(row.id) || depth > 8) return;
  for (const sub of subagents) addRow(lines, sub, below, unfolded, depth + 1);
}

/** merged puts refreshed rows above the known ones. */
export function merged<T extends { id: string }>(newest: readonly T[] | undefined, known: readonly T[] | undefined): T[] | undefined {
  if (!newest) return known?.slice();
  const again = new Set(newest.map((r) => r.id));
  return [...newest, ...(known ?? []).filter((r) => !again.has(r.id))];
}

/** matches reports whether all words occur in a row. */
export function matches(row: { title: string; workspace: string; agent: string; id: string; model?: string }, words: string): boolean {
  const text = `${row.title} ${row.workspace} ${row.agent} ${row.model ?? ""} ${row.id}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((w) => text.includes(w));
}
