// Messages of a transcript, by turn. A long conversation is read in pages, and only the
// visible ones.

/** pageTurns is how many turns are fetched at once. */
export const pageTurns = 20;

/** pagesFor lists the pages that hold a span of turns, from 0, the last excluded. */
export function pagesFor(from: number, to: number): number[] {
  const pages: number[] = [];
  for (let p = Math.floor(from / pageTurns); p * pageTurns < to; p++) pages.push(p);
  return pages;
}

/** byTurn sorts messages into turns; those without a turn belong to the first. */
export function byTurn<T extends { turn: number }>(messages: readonly T[], first: number): Map<number, T[]> {
  const turns = new Map<number, T[]>();
  for (const m of messages) {
    const n = m.turn > 0 ? m.turn - 1 : first;
    const list = turns.get(n);
    if (list) list.push(m);
    else turns.set(n, [m]);
  }
  return turns;
}
