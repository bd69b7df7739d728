import type { FileDiff } from "@gen/stet/v1/checkpoint_service_pb";
import { useEffect, useMemo, useState } from "preact/hooks";
import * as api from "./api.ts";
import { useLoad } from "./load.ts";

/** batch is how many files are asked for at once: their lines are highlighted, which takes
 * time. */
const batch = 16;

export interface Diff {
  files: FileDiff[];
  added: number;
  removed: number;
  /** The paths whose lines have arrived. */
  read: ReadonlySet<string>;
}

/** useDiff compares two versions: first which files differ, then the lines of some files
 * after the other, so that a diff of many files is there at once. */
export function useDiff(from: string, to: string, workspace: string) {
  const stat = useLoad((signal) => api.checkpoints.diff({ from, to, workspace, statOnly: true }, { signal }), [from, to, workspace]);
  const [lines, setLines] = useState<ReadonlyMap<string, FileDiff>>(new Map());
  const [problem, setProblem] = useState<api.Problem>();
  useEffect(() => {
    setLines(new Map());
    setProblem(undefined);
    const files = stat.value?.files ?? [];
    if (files.length === 0) return;
    const abort = new AbortController();
    // A name that is not text cannot be asked for.
    const some = files.every((f) => f.pathBytes.length === 0) ? batch : files.length;
    const read = async () => {
      for (let i = 0; i < files.length; i += some) {
        const paths = some === files.length ? [] : files.slice(i, i + some).map((f) => f.path);
        const res = await api.checkpoints.diff({ from, to, workspace, paths }, { signal: abort.signal });
        if (abort.signal.aborted) return;
        setLines((all) => new Map([...all, ...res.files.map((f) => [f.path, f] as const)]));
      }
    };
    read().catch((err) => !abort.signal.aborted && setProblem(api.problemOf(err)));
    return () => abort.abort();
  }, [stat.value]);
  const value = useMemo<Diff | undefined>(() => {
    if (!stat.value) return undefined;
    const { files, added, removed } = stat.value;
    return { files: files.map((f) => lines.get(f.path) ?? f), added, removed, read: new Set(lines.keys()) };
  }, [stat.value, lines]);
  return { value, problem: stat.problem ?? problem, again: stat.again };
}
