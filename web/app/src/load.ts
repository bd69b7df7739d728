import { signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Problem, problemOf } from "./api.ts";

/** lost is why the page may be out of date; null while the server answers. */
export const lost = signal<Problem | null>(null);

export interface Loaded<T> {
  value: T | undefined;
  problem: Problem | undefined;
  busy: boolean;
  again: () => void;
  /** Fetches again unless a request is pending, without a loading state. */
  poll: () => void;
}

/** useLoad fetches a value when its dependencies change. The last value stays while the
 * next is loading, and late answers are dropped. */
export function useLoad<T>(fetch: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[], keep = false): Loaded<T> {
  const [state, setState] = useState<{ value?: T; problem?: Problem; busy: boolean }>({ busy: true });
  const [round, setRound] = useState(0);
  const seen = useRef<readonly unknown[]>([]);
  const shown = useRef(false);
  const underway = useRef(false);
  const polling = useRef(false);
  useEffect(() => {
    const abort = new AbortController();
    const same = seen.current.length === deps.length && deps.every((d, i) => d === seen.current[i]);
    seen.current = deps;
    const quiet = same && polling.current;
    polling.current = false;
    underway.current = true;
    setState((s) => ({ value: same || keep ? s.value : undefined, problem: quiet ? s.problem : undefined, busy: true }));
    fetch(abort.signal).then(
      (value) => {
        if (abort.signal.aborted) return;
        underway.current = false;
        shown.current = true;
        lost.value = null;
        setState({ value, busy: false });
      },
      (err) => {
        if (abort.signal.aborted) return;
        underway.current = false;
        const problem = problemOf(err);
        if (problem.lost && shown.current) lost.value = problem;
        setState((s) => ({ value: s.value, problem, busy: false }));
      },
    );
    return () => abort.abort();
  }, [...deps, round]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  // If it were aborted at every request, a slow one would never finish.
  const poll = useCallback(() => {
    if (underway.current) return;
    polling.current = true;
    again();
  }, []);
  return { value: state.value, problem: state.problem, busy: state.busy, again, poll };
}

/** useEvery calls a function periodically while the page is visible. */
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
