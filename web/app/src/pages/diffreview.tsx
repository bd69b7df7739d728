import type { FileDiff } from "@gen/stet/v1/checkpoint_service_pb";
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useKeys } from "../keys.ts";
import { type Cell, type Row, split, unified } from "../lib/diff.ts";
import { count } from "../lib/format.ts";
import { useLoad } from "../load.ts";
import { Copy, Empty, Html, Lines, Trouble, Waiting } from "../ui.tsx";
import { List, type ListHandle } from "../virtual.tsx";

const mode = signal<"unified" | "split">(localStorage.getItem("stet-diff") === "split" ? "split" : "unified");

function setMode(m: "unified" | "split"): void {
  mode.value = m;
  localStorage.setItem("stet-diff", m);
}

type Line = { kind: "file"; file: FileDiff; index: number } | { kind: "row"; row: Row } | { kind: "note"; text: string };

/** DiffReview shows the difference of two checkpoints, file by file. */
export function DiffReview({ from, to, workspace }: { from: string; to: string; workspace: string }) {
  const diff = useLoad((signal) => api.checkpoints.diff({ from, to, workspace }, { signal }), [from, to, workspace]);
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState(0);
  const list = useRef<ListHandle>(null);
  const narrow = useNarrow();
  const shape = narrow ? "unified" : mode.value;
  const lines = useMemo(() => flatten(diff.value?.files ?? [], shape, seen), [diff.value, shape, seen]);
  const places = useMemo(() => lines.flatMap((l, i) => (l.kind === "file" ? [i] : [])), [lines]);
  const show = (n: number) => {
    const file = Math.max(0, Math.min(n, places.length - 1));
    setCurrent(file);
    list.current?.show(places[file]);
  };
  const toggleSeen = (path: string) => {
    const next = new Set(seen);
    if (!next.delete(path)) next.add(path);
    setSeen(next);
  };
  useKeys(
    "Diff",
    [
      { keys: "n", about: "Next file", run: () => show(current + 1) },
      { keys: "N", about: "Previous file", run: () => show(current - 1) },
      { keys: "s", about: "Side by side, or in one column", run: () => setMode(mode.value === "split" ? "unified" : "split") },
      { keys: "v", about: "Mark the file as seen, and fold it", run: () => diff.value?.files[current] && toggleSeen(diff.value.files[current].path) },
    ],
  );
  if (diff.problem) return <Trouble problem={diff.problem} again={diff.again} />;
  if (!diff.value) return <Waiting what="Comparing" />;
  const files = diff.value.files;
  if (files.length === 0) {
    return (
      <Empty title="No difference">
        <p>Every file is the same on both sides.</p>
      </Empty>
    );
  }
  return (
    <div class="review">
      <div class="review-head">
        <span>
          {count(files.length, "file")} <Lines added={diff.value.added} removed={diff.value.removed} />
        </span>
        <div class="segments" role="group" aria-label="Shape of the diff">
          <button type="button" aria-pressed={shape === "unified"} onClick={() => setMode("unified")}>
            One column
          </button>
          <button type="button" aria-pressed={shape === "split"} disabled={narrow} onClick={() => setMode("split")}>
            Side by side
          </button>
        </div>
        <span class="muted">
          {seen.size} of {files.length} seen
        </span>
      </div>
      <div class="review-body">
        <nav class="review-files" aria-label="Changed files" tabIndex={0}>
          {files.map((f, i) => (
            <button type="button" key={f.path} class={`review-file${seen.has(f.path) ? " seen" : ""}`} aria-current={i === current ? "true" : undefined} onClick={() => show(i)}>
              <span class={`action ${f.action}`} title={f.action} aria-label={f.action}>
                {letter(f.action)}
              </span>
              <span class="path">{f.path}</span>
              <Lines added={f.added} removed={f.removed} />
            </button>
          ))}
        </nav>
        <List
          count={lines.length}
          estimate={21}
          role="list"
          label="Diff"
          class={`diff ${shape}`}
          handle={list}
          render={(i) => <DiffLine line={lines[i]} seen={seen} toggle={toggleSeen} />}
        />
      </div>
    </div>
  );
}

function useNarrow(): boolean {
  const media = useMemo(() => matchMedia("(max-width: 760px)"), []);
  const [narrow, setNarrow] = useState(media.matches);
  useEffect(() => {
    const on = () => setNarrow(media.matches);
    media.addEventListener("change", on);
    return () => media.removeEventListener("change", on);
  }, []);
  return narrow;
}

function letter(action: string): string {
  if (action.startsWith("add") || action.startsWith("creat")) return "A";
  if (action.startsWith("del") || action.startsWith("remov")) return "D";
  return "M";
}

function flatten(files: readonly FileDiff[], shape: "unified" | "split", seen: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  files.forEach((file, index) => {
    lines.push({ kind: "file", file, index });
    if (seen.has(file.path)) return;
    if (file.binary) lines.push({ kind: "note", text: "Not a text." });
    else if (file.hunks.length === 0) lines.push({ kind: "note", text: file.truncated ? "Too large to show." : "Only the mode differs." });
    for (const row of shape === "split" ? split(file.hunks) : unified(file.hunks)) lines.push({ kind: "row", row });
    if (file.truncated && file.hunks.length > 0) lines.push({ kind: "note", text: "The rest is too long to show." });
  });
  return lines;
}

function DiffLine({ line, seen, toggle }: { line: Line; seen: ReadonlySet<string>; toggle: (path: string) => void }) {
  if (line.kind === "note") return <p class="diff-note muted">{line.text}</p>;
  if (line.kind === "file") {
    const f = line.file;
    return (
      <div class="diff-file">
        <h2 class="path">{f.path}</h2>
        <span class={`action ${f.action}`}>{f.action}</span>
        <Lines added={f.added} removed={f.removed} />
        <Copy text={f.path} label="path" />
        <label>
          <input type="checkbox" checked={seen.has(f.path)} onChange={() => toggle(f.path)} /> seen
        </label>
      </div>
    );
  }
  const row = line.row;
  if (row.kind === "gap") return <div class="diff-gap">{row.text}</div>;
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
