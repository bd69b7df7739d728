// The files of a checkpoint as a tree whose directories are read when they are opened.

export interface Entry {
  path: string;
  kind: string;
  size: bigint;
  /** How many files are below a directory. */
  files: bigint;
}

export interface TreeRow<T> {
  entry: T;
  depth: number;
  folder: boolean;
  open: boolean;
}

export const isFolder = (e: { kind: string }) => e.kind === "dir" || e.kind === "directory";

/** parents lists the directories above a path, the topmost first. */
export function parents(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join("/"));
}

/** treeRows lists what is visible: below the root ("") and each open directory that was
 * read, folders first. */
export function treeRows<T extends Entry>(read: ReadonlyMap<string, readonly T[]>, open: ReadonlySet<string>): TreeRow<T>[] {
  const rows: TreeRow<T>[] = [];
  const add = (dir: string, depth: number) => {
    const entries = read.get(dir) ?? [];
    for (const folder of [true, false]) {
      for (const entry of entries) {
        if (isFolder(entry) !== folder) continue;
        const unfolded = folder && open.has(entry.path);
        rows.push({ entry, depth, folder, open: unfolded });
        if (unfolded) add(entry.path, depth + 1);
      }
    }
  };
  add("", 0);
  return rows;
}
