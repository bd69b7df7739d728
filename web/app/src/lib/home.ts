// Conversations by day and by workspace.

import { baseName, dayName, startOfDay } from "./format.ts";

export interface Listed {
  workspace: string;
  updatedMs: bigint;
}

export type Line<T> = { kind: "day"; name: string; key: string } | { kind: "place"; name: string; path: string; key: string } | { kind: "row"; row: T; key: string };

/** grouped adds headings between rows, which are sorted by last change, newest first. */
export function grouped<T extends Listed & { id: string }>(rows: readonly T[], now: number): Line<T>[] {
  const days = new Map<number, Map<string, T[]>>();
  for (const row of rows) {
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
      for (const row of list) lines.push({ kind: "row", row, key: row.id });
    }
  }
  return lines;
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
