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

/** begin is where a plot begins unless everything is asked for: after the longest pause,
 * if that takes most of the width and most points are after it. */
export function begin(times: readonly number[]): number {
  let from = 0;
  for (;;) {
    const span = times[times.length - 1] - times[from];
    let gap = -1;
    for (let i = from; i + 1 < times.length; i++) if (gap < 0 || times[i + 1] - times[i] > times[gap + 1] - times[gap]) gap = i;
    if (gap < 0 || times[gap + 1] - times[gap] < span / 2 || (gap + 1) * 2 > times.length) return times[from] ?? 0;
    from = gap + 1;
  }
}
