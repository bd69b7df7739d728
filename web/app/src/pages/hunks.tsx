import { type Cell, type Hunk, type Row, unified } from "../lib/diff.ts";
import type { Mark } from "../lib/blame.ts";
import { Html } from "../ui.tsx";
import { MarkCell } from "./blame.tsx";

/** Hunks shows the changed lines of a file in one column. */
export function Hunks({ hunks, label = "Merged result" }: { hunks: readonly Hunk[]; label?: string }) {
  return (
    <div class="diff hunks" tabIndex={0} role="region" aria-label={label}>
      {unified(hunks).map((row, i) => (row.kind === "gap" ? <div key={i} class="diff-gap">{row.text}</div> : <DiffRow key={i} row={row} />))}
    </div>
  );
}

/** DiffRow shows one line of a diff, or two beside each other, with marks where there are some. */
export function DiffRow({ row, marks }: { row: Exclude<Row, { kind: "gap" }>; marks?: readonly (Mark | undefined)[] }) {
  if (row.kind === "line") {
    return (
      <div class={`diff-line ${opClass(row.cell.op)}${marks ? " marked" : ""}`}>
        {marks && <MarkCell mark={marks[0]} />}
        <span class="number">{row.before || ""}</span>
        <span class="number">{row.after || ""}</span>
        <Code cell={row.cell} />
      </div>
    );
  }
  return (
    <div class="diff-pair">
      <Half cell={row.left} marks={marks && [marks[0]]} />
      <Half cell={row.right} marks={marks && [marks[1]]} />
    </div>
  );
}

const opClass = (op: string) => (op === "+" ? "add" : op === "-" ? "del" : "");

function Half({ cell, marks }: { cell: Cell | null; marks?: readonly (Mark | undefined)[] }) {
  if (!cell) return <div class="half none" />;
  return (
    <div class={`half ${opClass(cell.op)}${marks ? " marked" : ""}`}>
      {marks && <MarkCell mark={marks[0]} narrow />}
      <span class="number">{cell.number}</span>
      <Code cell={cell} />
    </div>
  );
}

function Code({ cell }: { cell: Cell }) {
  return (
    <span class="code-line">
      <span class="op" aria-hidden="true">
        {cell.op}
      </span>
      {cell.op !== " " && <span class="visually-hidden">{cell.op === "+" ? "added: " : "removed: "}</span>}
      <Html as="code" html={cell.html} />
    </span>
  );
}
