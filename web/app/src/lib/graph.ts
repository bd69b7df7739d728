// The layout of a graph: columns by distance, rows in the order of the nodes that
// refer to them.

export interface Node {
  depth: number;
}

export interface Placed {
  x: number;
  y: number;
}

export const box = { width: 190, height: 44, gapX: 72, gapY: 12 };

/** layout returns the place of each node and the size of the drawing. */
export function layout(nodes: readonly Node[]): { places: Placed[]; width: number; height: number } {
  const rows: number[] = [];
  const places = nodes.map((n) => {
    const row = rows[n.depth] ?? 0;
    rows[n.depth] = row + 1;
    return { x: n.depth * (box.width + box.gapX), y: row * (box.height + box.gapY) };
  });
  const columns = rows.length;
  const tallest = Math.max(0, ...rows.map((r) => r ?? 0));
  // Short columns are centred, as far as the tallest one allows.
  const shift = rows.map((r) => Math.min(((tallest - (r ?? 0)) * (box.height + box.gapY)) / 2, 120));
  nodes.forEach((n, i) => {
    places[i].y += shift[n.depth];
  });
  return {
    places,
    width: Math.max(0, columns * (box.width + box.gapX) - box.gapX),
    height: Math.max(0, tallest * (box.height + box.gapY) - box.gapY),
  };
}

/** curve is the path of an edge from the right of one box to the left of another. */
export function curve(a: Placed, b: Placed): string {
  const x1 = a.x + box.width;
  const y1 = a.y + box.height / 2;
  const y2 = b.y + box.height / 2;
  const middle = (x1 + b.x) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${b.x} ${y2}`;
}
