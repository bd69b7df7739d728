import { type Cell, type Hunk, type Row, unified } from "../lib/diff.ts";
import { Html } from "../ui.tsx";

/** Hunks shows the changed lines of a file in one column. */
export function Hunks({ hunks }: { hunks: readonly Hunk[] }) {
  return (
    <div class="diff hunks" tabIndex={0} role="region" aria-label="Merged result">
      {unified(hunks).map((row, i) => (row.kind === "gap" ? <div key={i} class="diff-gap">{row.text}</div> : <DiffRow key={i} row={row} />))}
    </div>
  );
}

/** DiffRow shows one line of a diff, or two beside each other. */
export function DiffRow({ row }: { row: Exclude<Row, { kind: "gap" }> }) {
  if (row.kind === "line") {
    return (
      <div class={`diff-line ${opClass(row.cell.op)}`}>
        <span class="number">{row.before || ""}</span>
        <span class="number">{row.after || ""}</span>
        <Code cell={row.cell} />
      </div>
    );
  }
  return (
    <div class="diff-pair">
      <Half cell={row.left} />
      <Half cell={row.right} />
    </div>
  );
}

const opClass = (op: string) => (op === "+" ? "add" : op === "-" ? "del" : "");

function Half({ cell }: { cell: Cell | null }) {
  if (!cell) return <div class="half none" />;
  return (
    <div class={`half ${opClass(cell.op)}`}>
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
