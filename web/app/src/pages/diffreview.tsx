import type { FileDiff } from "@gen/stet/v1/checkpoint_service_pb";
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Diff, useDiff } from "../diffs.ts";
import { useKeys } from "../keys.ts";
import { lazy } from "../lazy.tsx";
import { type Row, split, unified } from "../lib/diff.ts";
import { count } from "../lib/format.ts";
import { Copy, Empty, Lines, Trouble, Waiting } from "../ui.tsx";
import { List, type ListHandle } from "../virtual.tsx";
import { type DiffBlame, Switch, inDiffs, sides, toggle, useDiffBlame } from "./blame.tsx";
import { DiffRow } from "./hunks.tsx";
import type { Part } from "./restore.tsx";

const RestoreSheet = lazy(() => import("./restore.tsx"));

const mode = signal<"unified" | "split">(localStorage.getItem("stet-diff") === "split" ? "split" : "unified");

function setMode(m: "unified" | "split"): void {
  mode.value = m;
  localStorage.setItem("stet-diff", m);
}

type Line = { kind: "file"; file: FileDiff; index: number } | { kind: "row"; row: Row; file: FileDiff } | { kind: "note"; text: string };

interface Props {
  from: string;
  to: string;
  workspace: string;
  /** The name of the left side and the conversation; files of it can be restored then. */
  name?: string;
  conversation?: string;
  /** Called after something was restored. */
  reload?: () => void;
}

/** DiffReview shows the difference of two checkpoints, file by file. */
export function DiffReview({ from, to, workspace, name, conversation = "", reload }: Props) {
  const [part, setPart] = useState<Part>();
  const diff = useDiff(from, to, workspace);
  const blame = useDiffBlame(from, to, workspace);
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState(0);
  const list = useRef<ListHandle>(null);
  const narrow = useNarrow();
  const shape = narrow ? "unified" : mode.value;
  const lines = useMemo(() => flatten(diff.value, shape, seen), [diff.value, shape, seen]);
  const places = useMemo(() => lines.flatMap((l, i) => (l.kind === "file" ? [i] : [])), [lines]);
  const show = (n: number) => {
    const file = Math.max(0, Math.min(n, places.length - 1));
    setCurrent(file);
    list.current?.show(places[file]);
  };
  const span = useRef([0, 0]);
  const colour = () => {
    const inView = lines.slice(...span.current).flatMap((l) => (l.kind === "row" ? [l.file] : []));
    diff.colour(inView);
    blame.want(inView);
  };
  useEffect(colour, [lines, blame.on]);
  // Lines of files above may arrive later; the file stays in view.
  useLayoutEffect(() => {
    if (list.current?.held()) list.current.show(places[current]);
  }, [places]);
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
      { keys: "b", about: "Show where each line came from", run: () => toggle(inDiffs) },
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
        <Switch which={inDiffs} />
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
          onSpan={(from, to) => {
            span.current = [from, to];
            colour();
          }}
          render={(i) => <DiffLine line={lines[i]} seen={seen} toggle={toggleSeen} restore={name ? setPart : undefined} blame={blame} />}
        />
      </div>
      {part && (
        <RestoreSheet
          {...{ part, from, name: name!, to, workspace, conversation }}
          onClose={() => setPart(undefined)}
          done={() => {
            diff.again();
            reload?.();
          }}
        />
      )}
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

function flatten(diff: Diff | undefined, shape: "unified" | "split", seen: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  diff?.files.forEach((file, index) => {
    lines.push({ kind: "file", file, index });
    if (seen.has(file.path)) return;
    if (!diff.read.has(file.path)) {
      lines.push({ kind: "note", text: "Loading…" });
      return;
    }
    if (file.binary) lines.push({ kind: "note", text: "Not a text." });
    else if (file.hunks.length === 0) lines.push({ kind: "note", text: file.truncated ? "Too large to show." : "Only the mode differs." });
    for (const row of shape === "split" ? split(file.hunks) : unified(file.hunks)) lines.push({ kind: "row", row, file });
    if (file.truncated && file.hunks.length > 0) lines.push({ kind: "note", text: "The rest is too long to show." });
  });
  return lines;
}

function DiffLine({ line, seen, toggle, restore, blame }: { line: Line; seen: ReadonlySet<string>; toggle: (path: string) => void; restore?: (part: Part) => void; blame: DiffBlame }) {
  if (line.kind === "note") return <p class="diff-note muted">{line.text}</p>;
  if (line.kind === "file") {
    const f = line.file;
    return (
      <div class="diff-file">
        <h2 class="path">{f.path}</h2>
        <span class={`action ${f.action}`}>{f.action}</span>
        <Lines added={f.added} removed={f.removed} />
        <Copy text={f.path} label="path" />
        {restore && f.pathBytes.length === 0 && (
          <button type="button" class="quiet" onClick={() => restore({ path: f.path })}>
            Restore this file…
          </button>
        )}
        <label>
          <input type="checkbox" checked={seen.has(f.path)} onChange={() => toggle(f.path)} /> seen
        </label>
      </div>
    );
  }
  const { row, file } = line;
  if (row.kind !== "gap") return <DiffRow row={row} marks={blame.on ? sides(blame, file.path, row) : undefined} />;
  return (
    <div class="diff-gap">
      <span>{row.text}</span>
      {restore && file.action === "modify" && !file.truncated && (
        <button type="button" class="quiet" onClick={() => restore({ path: file.path, hunk: row.hunk })}>
          Restore these lines…
        </button>
      )}
    </div>
  );
}
