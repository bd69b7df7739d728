// The timeline of a conversation: the current line, and beside it branches that rewinds
// left behind.

export interface Point {
  gone: boolean;
  quiet: boolean;
  /** The branch that a rewind left behind; 0 for what stands. */
  branch: number;
}

/** isGap reports whether an entry represents removed checkpoints. */
export function isGap(e: { checkpoint?: { kind: string } }): boolean {
  return e.checkpoint?.kind === "forgotten";
}

export interface Lane<T> {
  entry: T;
  /** 0 is the current line, 1 a branch. */
  lane: 0 | 1;
  /** Whether the current line passes this row above and below its middle. */
  above: boolean;
  below: boolean;
  /** Whether the branch passes, and whether it joins the line under this row. */
  branchAbove: boolean;
  joins: boolean;
}

/** lanes arranges entries, newest first. Quiet ones are omitted unless all is set. */
export function lanes<T extends Point>(entries: readonly T[], all = false): Lane<T>[] {
  const shown = entries.filter((e) => all || !e.quiet);
  const firstLive = shown.findIndex((e) => !e.gone);
  let lastLive = -1;
  shown.forEach((e, i) => {
    if (!e.gone) lastLive = i;
  });
  return shown.map((entry, i) => {
    const before = shown[i - 1];
    const after = shown[i + 1];
    const live = !entry.gone;
    return {
      entry,
      lane: live ? 0 : 1,
      above: live ? i > firstLive : firstLive >= 0 && i > firstLive,
      below: live ? i < lastLive : i < lastLive,
      branchAbove: !live && before?.branch === entry.branch,
      joins: !live && after?.branch !== entry.branch,
    };
  });
}

/** target is where a rewind goes unless something else is chosen: the selected entry, or
 * what stands before the newest. */
export function target<T extends Point & { current: boolean }>(entries: readonly T[], selected: T | undefined): T | undefined {
  if (selected) return selected;
  const standing = entries.filter((e) => !e.gone && !e.quiet);
  const here = standing.findIndex((e) => e.current);
  return standing[here + 1] ?? standing[Math.max(here, 0)];
}

/** pair returns the two points to compare: those that are asked for or, where one is
 * missing, another one than the other. An undefined right side is the files as they are
 * now. */
export function pair<T extends Point & { current: boolean; checkpoint?: { id: string } }>(entries: readonly T[], from: string | null, to: string | null): { left: T | undefined; right: T | undefined } {
  const find = (id: string | null) => (id ? entries.find((e) => e.checkpoint?.id === id) : undefined);
  const standing = entries.filter((e) => !e.gone && !e.quiet);
  const asked = find(from);
  const newest = standing.find((e) => e !== asked);
  // One point alone is compared with the files now.
  const right = to === "@" ? undefined : (find(to) ?? (asked || standing.length > 1 ? newest : undefined));
  const older = standing.slice(right ? standing.indexOf(right) + 1 : 0);
  return { left: asked ?? older[0] ?? standing.find((e) => e !== right) ?? entries.find((e) => e !== right), right };
}
