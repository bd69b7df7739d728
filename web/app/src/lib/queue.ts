/** Queue asks for a few things at a time, one answer after the other. What was wanted and is
 * no longer, because it left the view, is not asked for. */
export class Queue {
  #ask: (some: string[]) => Promise<void>;
  #most: number;
  #asked = new Set<string>();
  #wanted: string[] = [];
  #busy = false;

  constructor(ask: (some: string[]) => Promise<void>, most: number) {
    this.#ask = ask;
    this.#most = most;
  }

  /** want says what is wanted from now on. Nothing is asked for twice. */
  want(all: Iterable<string>): void {
    this.#wanted = [...new Set(all)].filter((one) => !this.#asked.has(one));
    if (!this.#busy) void this.#run();
  }

  async #run(): Promise<void> {
    this.#busy = true;
    while (this.#wanted.length > 0) {
      const some = this.#wanted.splice(0, this.#most);
      for (const one of some) this.#asked.add(one);
      await this.#ask(some);
    }
    this.#busy = false;
  }
}
