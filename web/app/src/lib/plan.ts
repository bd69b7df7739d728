// The plan of a rewind, sorted as the command line shows it.

export type Choice = "keep-mine" | "theirs" | "merge";

export const choices: readonly { value: Choice; label: string; about: string }[] = [
  { value: "keep-mine", label: "keep mine", about: "The file stays unchanged" },
  { value: "theirs", label: "take the checkpoint's", about: "Your changes are replaced; the current state is saved first" },
  { value: "merge", label: "merge", about: "Only the agent's changes are undone" },
];

export interface Planned {
  path: string;
  action: string;
}

/** sorted separates changes, conflicts and unchanged files. */
export function sorted<T extends Planned>(files: readonly T[]): { changes: T[]; conflicts: T[]; kept: T[] } {
  const out = { changes: [] as T[], conflicts: [] as T[], kept: [] as T[] };
  for (const f of files) {
    if (f.action === "conflict") out.conflicts.push(f);
    else if (f.action === "keep") out.kept.push(f);
    else out.changes.push(f);
  }
  return out;
}
