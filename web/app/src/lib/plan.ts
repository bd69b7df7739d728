// The plan of a rewind, sorted as the command line shows it.

export type Choice = "keep-mine" | "theirs" | "merge";

export const choices: readonly { value: Choice; label: string; about: string }[] = [
  { value: "keep-mine", label: "keep mine", about: "The file stays as it is" },
  { value: "theirs", label: "take the checkpoint's", about: "Your changes are replaced; the present is saved first" },
  { value: "merge", label: "merge", about: "Only the agent's changes are taken back" },
];

export interface Planned {
  path: string;
  action: string;
}

/** sorted separates what changes from conflicts and from what stays. */
export function sorted<T extends Planned>(files: readonly T[]): { changes: T[]; conflicts: T[]; kept: T[] } {
  const out = { changes: [] as T[], conflicts: [] as T[], kept: [] as T[] };
  for (const f of files) {
    if (f.action === "conflict") out.conflicts.push(f);
    else if (f.action === "keep") out.kept.push(f);
    else out.changes.push(f);
  }
  return out;
}
