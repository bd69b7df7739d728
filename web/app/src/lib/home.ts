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
function families<T extends Listed & { id: string }>(rows: readonly T[]): Map<string, T[]> {
  const ids = new Set(rows.map((r) => r.id));
  const found = new Map<string, T[]>();
  for (const row of rows) {
    const parent = row.subagentOf;
    if (parent && parent !== row.id && ids.has(parent)) found.set(parent, [row, ...(found.get(parent) ?? [])]);
  }
  return found;
}

/** grouped adds headings between rows, which are sorted by last change, newest first.
 * Subagents are below the conversation that started them, if that is in the set of
 * unfolded ones; otherwise a line counts them. */
export function grouped<T extends Listed & { id: string }>(rows: readonly T[], now: number, unfolded: ReadonlySet<string> = new Set()): Line<T>[] {
  const below = families(rows);
  const folded = new Set([...below.values()].flat().map((r) => r.id));
  const days = new Map<number, Map<string, T[]>>();
  for (const row of rows) {
    if (folded.has(row.id)) continue;
    const day = startOfDay(Number(row.updatedMs));
    const places = days.get(day) ?? new Map<string, T[]>();
    days.set(day, places);
    places.set(row.workspace, [...(places.get(row.workspace) ?? []), row]);
  }
  const lines: Line<T>[] = [];
  for (const [day, places] of days) {
    lines.push({ kind: "day", name: dayName(day, now), key: `d${day}` });
    for (const [path, list] of places) {
      lines.push({ kind: "place", name: path ? baseName(path) : "no workspace", path, key: `p${day}${path}` });
      for (const row of list) addRow(lines, row, below, unfolded, 0);
    }
  }
  return lines;
}

function addRow<T extends Listed & { id: string }>(lines: Line<T>[], row: T, below: Map<string, T[]>, unfolded: ReadonlySet<string>, depth: number): void {
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
