// The attempts of a try beside each other.
import { duration, tokenCount } from "./format.ts";

interface Changed {
  path: string;
  added: number;
  removed: number;
}

/** MatrixRow is a path and what each attempt did to it; undefined where it is unchanged. */
export interface MatrixRow<T extends Changed> {
  path: string;
  cells: (T | undefined)[];
}

/** matrix joins the changed files of attempts, by path. */
export function matrix<T extends Changed>(columns: readonly (readonly T[])[]): MatrixRow<T>[] {
  const paths = [...new Set(columns.flatMap((files) => files.map((f) => f.path)))].sort();
  return paths.map((path) => ({ path, cells: columns.map((files) => files.find((f) => f.path === path)) }));
}

interface Attempt {
  ended: boolean;
  end: string;
  exitCode: number;
  score?: number;
  durationMs: bigint;
  spent?: { inputTokens: bigint; outputTokens: bigint; cacheReadTokens: bigint; cacheWriteTokens: bigint };
}

/** result says how an attempt ended. */
export function result(a: Attempt): string {
  if (!a.ended) return "running, or killed";
  if (a.end) return a.end;
  return a.exitCode === 0 ? "succeeded" : `exit code ${a.exitCode}`;
}

/** score is the number of an attempt, or nothing. */
export function score(a: Attempt): string {
  return a.score === undefined ? "" : String(Number(a.score.toPrecision(6)));
}

/** took says how long an attempt ran. */
export const took = (a: Attempt): string => (a.ended ? duration(Number(a.durationMs)) : "");

/** read says how many tokens an attempt took, where it is known. */
export function read(a: Attempt): string {
  const s = a.spent;
  return s ? tokenCount(s.inputTokens + s.outputTokens + s.cacheReadTokens + s.cacheWriteTokens) : "";
}
