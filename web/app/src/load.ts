import { signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Problem, problemOf } from "./api.ts";

/** lost is why what the page shows may be old; null while the server answers. */
export const lost = signal<Problem | null>(null);

export interface Loaded<T> {
  value: T | undefined;
  problem: Problem | undefined;
  busy: boolean;
  again: () => void;
  /** Asks again unless an answer is on its way, and shows nothing meanwhile. */
  poll: () => void;
}

/** useLoad fetches something when its dependencies change. The last value stays on
 * the page while the next is on its way, and answers that come late are dropped. */
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
  // One that is asked for more often than it is answered would never be answered.
  const poll = useCallback(() => {
    if (underway.current) return;
    polling.current = true;
    again();
  }, []);
  return { value: state.value, problem: state.problem, busy: state.busy, again, poll };
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
