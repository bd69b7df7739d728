// Heights of the rows of a list of which only a few are rendered. Rows that were never
// shown have an estimated height.

export class Heights {
  private known: Float64Array;
  private measured: Uint8Array;
  private sums: Float64Array | null = null;

  constructor(public readonly length: number, private readonly estimate: number, from?: Heights) {
    this.known = new Float64Array(length).fill(estimate);
    this.measured = new Uint8Array(length);
    if (from) {
      const n = Math.min(length, from.length);
      this.known.set(from.known.subarray(0, n));
      this.measured.set(from.measured.subarray(0, n));
    }
  }

  /** set records the height of a row and returns the difference from before. */
  set(i: number, height: number): number {
    if (i < 0 || i >= this.length || height <= 0) return 0;
    const delta = height - this.known[i];
    this.measured[i] = 1;
    if (Math.abs(delta) < 0.5) return 0;
    this.known[i] = height;
    this.sums = null;
    return delta;
  }

  of(i: number): number {
    return this.known[i] ?? this.estimate;
  }

  /** top is where a row begins. */
  top(i: number): number {
    return this.prefix()[Math.max(0, Math.min(i, this.length))];
  }

  get total(): number {
    return this.prefix()[this.length];
  }

  /** at is the row at a place. */
  at(y: number): number {
    const sums = this.prefix();
    let [low, high] = [0, this.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (sums[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** span is the rows to show, the last excluded, with some to spare on both sides. */
  span(top: number, height: number, spare: number): [number, number] {
    if (this.length === 0) return [0, 0];
    const from = Math.max(0, this.at(top) - spare);
    const to = Math.min(this.length, this.at(top + height) + 1 + spare);
    return [from, to];
  }

  private prefix(): Float64Array {
    if (!this.sums) {
      const sums = new Float64Array(this.length + 1);
      for (let i = 0; i < this.length; i++) sums[i + 1] = sums[i] + this.known[i];
      this.sums = sums;
    }
    return this.sums;
  }
}
