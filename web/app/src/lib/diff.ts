// Diffs come from the server as hunks of lines; here they become rows to show.

export interface Line {
  op: string; // " ", "+" or "-"
  html: string;
  text: string;
}

export interface Hunk {
  fromLine: number;
  toLine: number;
  lines: readonly Line[];
}

export interface Cell {
  number: number;
  op: string;
  html: string;
  text: string;
}

/** Row is a line of a unified diff (one cell) or of a split one (two, or one of them). */
export type Row =
  | { kind: "gap"; text: string; hunk: Hunk }
  | { kind: "line"; before: number; after: number; cell: Cell }
  | { kind: "pair"; left: Cell | null; right: Cell | null };

/** unified returns the rows of a diff in one column. */
export function unified(hunks: readonly Hunk[]): Row[] {
  const rows: Row[] = [];
  for (const h of hunks) {
    rows.push({ kind: "gap", text: header(h), hunk: h });
    let [x, y] = [h.fromLine, h.toLine];
    for (const l of h.lines) {
      const number = l.op === "-" ? x : y;
      rows.push({
        kind: "line",
        before: l.op === "+" ? 0 : x,
        after: l.op === "-" ? 0 : y,
        cell: { number, op: l.op, html: l.html, text: l.text },
      });
      if (l.op !== "+") x++;
      if (l.op !== "-") y++;
    }
  }
  return rows;
}

/** split returns the rows of a diff in two columns: removed and added lines. */
export function split(hunks: readonly Hunk[]): Row[] {
  const rows: Row[] = [];
  for (const h of hunks) {
    rows.push({ kind: "gap", text: header(h), hunk: h });
    let [x, y] = [h.fromLine, h.toLine];
    let gone: Cell[] = [];
    let come: Cell[] = [];
    const flush = () => {
      for (let i = 0; i < Math.max(gone.length, come.length); i++) rows.push({ kind: "pair", left: gone[i] ?? null, right: come[i] ?? null });
      gone = [];
      come = [];
    };
    for (const l of h.lines) {
      if (l.op === "-") gone.push({ number: x++, op: "-", html: l.html, text: l.text });
      else if (l.op === "+") come.push({ number: y++, op: "+", html: l.html, text: l.text });
      else {
        flush();
        const same = { op: " ", html: l.html, text: l.text };
        rows.push({ kind: "pair", left: { number: x++, ...same }, right: { number: y++, ...same } });
      }
    }
    flush();
  }
  return rows;
}

function header(h: Hunk): string {
  const { line, lines, fromLine, fromLines } = ranges(h);
  return `@@ −${line},${lines} +${fromLine},${fromLines} @@`;
}

/** ranges names the lines of a hunk: those of the left side, which can be put back in the
 * place of those of the right side. */
export function ranges(h: Hunk): { line: number; lines: number; fromLine: number; fromLines: number } {
  return { line: h.fromLine, lines: h.lines.filter((l) => l.op !== "+").length, fromLine: h.toLine, fromLines: h.lines.filter((l) => l.op !== "-").length };
}

/** parseUnified reads a diff in text form, as tools report it, into lines with a class. */
export function parseUnified(text: string): { op: string; text: string }[] {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => {
      const first = line[0] ?? " ";
      if (line.startsWith("+++") || line.startsWith("---")) return { op: "f", text: line };
      if (first === "@") return { op: "@", text: line };
      return { op: first === "+" || first === "-" ? first : " ", text: line };
    });
}
