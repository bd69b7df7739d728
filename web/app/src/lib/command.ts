// Commands to be typed in a terminal, complete: they work in any directory.

/** Place is what a command needs to find its store and its workspace. */
export interface Place {
  /** The directory of the store; empty if it is not known. */
  store: string;
  /** The directory of the workspace; empty for commands that need none. */
  workspace?: string;
}

/** quoted writes a word so that a shell reads it as it is. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** command returns a command line of stet for a place. Empty words are left out. */
export function command(at: Place, ...words: string[]): string {
  const where = [...(at.store ? ["--store", at.store] : []), ...(at.workspace ? ["-C", at.workspace] : [])];
  return ["stet", ...where, ...words.filter(Boolean)].map(quoted).join(" ");
}
