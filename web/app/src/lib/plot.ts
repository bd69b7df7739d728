// Series of a stacked plot.

export interface Point {
  timeMs: bigint;
  bytes: readonly bigint[];
}

/** stacked returns times in seconds and, for each kind, the sum up to it. Points of the
 * same second are merged, because the times of a plot must increase. */
export function stacked(points: readonly Point[], kinds: number): { times: number[]; series: number[][] } {
  const times: number[] = [];
  const series: number[][] = Array.from({ length: kinds }, () => []);
  for (const p of points) {
    const t = Math.floor(Number(p.timeMs) / 1000);
    const at = times[times.length - 1] === t ? times.length - 1 : times.length;
    times[at] = t;
    let sum = 0;
    for (let k = 0; k < kinds; k++) {
      sum += Number(p.bytes[k] ?? 0n); // kinds added later start at 0
      series[k][at] = sum;
    }
  }
  return { times, series };
}
