import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Problem, isGone, problemOf } from "./api.ts";

export interface Loaded<T> {
  value: T | undefined;
  problem: Problem | undefined;
  busy: boolean;
  again: () => void;
}

/** useLoad fetches something when its dependencies change. The last value stays on
 * the page while the next is on its way, and answers that come late are dropped. */
export function useLoad<T>(fetch: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[], keep = false): Loaded<T> {
  const [state, setState] = useState<{ value?: T; problem?: Problem; busy: boolean }>({ busy: true });
  const [round, setRound] = useState(0);
  const seen = useRef<readonly unknown[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const same = seen.current.length === deps.length && deps.every((d, i) => d === seen.current[i]);
    seen.current = deps;
    setState((s) => ({ value: same || keep ? s.value : undefined, problem: undefined, busy: true }));
    fetch(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ value, busy: false });
      },
      (err) => {
        if (!abort.signal.aborted && !isGone(err)) setState((s) => ({ value: s.value, problem: problemOf(err), busy: false }));
      },
    );
    return () => abort.abort();
  }, [...deps, round]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  return { value: state.value, problem: state.problem, busy: state.busy, again };
}

/** useEvery calls something from time to time while the page is looked at. */
export function useEvery(ms: number, run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") latest.current();
    }, ms);
    return () => clearInterval(timer);
  }, [ms]);
}
