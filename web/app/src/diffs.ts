import type { FileDiff } from "@gen/stet/v1/checkpoint_service_pb";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "./api.ts";
import { Queue } from "./lib/queue.ts";
import { useLoad } from "./load.ts";

/** batch is how many files one answer has, and colours how many of them where their lines
 * are highlighted, which takes a hundred times as long. */
const batch = 50;
const colours = 2;

export interface Diff {
  files: FileDiff[];
  added: number;
  removed: number;
  /** The paths whose lines have arrived. */
  read: ReadonlySet<string>;
}

/** useDiff compares two versions: first which files differ, then their lines, so that a diff
 * of many files is there at once. colour says which files are in view: their lines are
 * asked for again, highlighted. */
export function useDiff(from: string, to: string, workspace: string) {
  const stat = useLoad((signal) => api.checkpoints.diff({ from, to, workspace, statOnly: true }, { signal }), [from, to, workspace]);
  const [lines, setLines] = useState<ReadonlyMap<string, FileDiff>>(new Map());
  const [problem, setProblem] = useState<api.Problem>();
  const queue = useRef<Queue | undefined>(undefined);
  useEffect(() => {
    queue.current = undefined;
    setLines(new Map());
    setProblem(undefined);
    const files = stat.value?.files ?? [];
    if (files.length === 0) return;
    const abort = new AbortController();
    // A name that is not text cannot be asked for.
    const some = files.every((f) => f.pathBytes.length === 0) ? batch : files.length;
    const ask = async (paths: string[], plain: boolean) => {
      try {
        const res = await api.checkpoints.diff({ from, to, workspace, paths, plain }, { signal: abort.signal });
        if (!abort.signal.aborted) setLines((all) => new Map([...all, ...res.files.map((f) => [f.path, f] as const)]));
      } catch (err) {
        if (!abort.signal.aborted) setProblem(api.problemOf(err));
        throw err;
      }
    };
    const read = async () => {
      for (let i = 0; i < files.length && !abort.signal.aborted; i += some) {
        await ask(some === files.length ? [] : files.slice(i, i + some).map((f) => f.path), true);
      }
    };
    queue.current = new Queue((paths) => ask(paths, false).catch(() => {}), colours);
    read().catch(() => {});
    return () => abort.abort();
  }, [stat.value]);
  const value = useMemo<Diff | undefined>(() => {
    if (!stat.value) return undefined;
    const { files, added, removed } = stat.value;
    return { files: files.map((f) => lines.get(f.path) ?? f), added, removed, read: new Set(lines.keys()) };
  }, [stat.value, lines]);
  const colour = (inView: readonly FileDiff[]) => queue.current?.want(inView.filter((f) => lines.has(f.path) && f.pathBytes.length === 0).map((f) => f.path));
  return { value, problem: stat.problem ?? problem, again: stat.again, colour };
}
