import type { FileDiff } from "@gen/stet/v1/checkpoint_service_pb";
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { type Mark, about, markOf, marks, shade, short } from "../lib/blame.ts";
import type { Row } from "../lib/diff.ts";
import { Queue } from "../lib/queue.ts";
import { to } from "../lib/route.ts";
import { useLoad } from "../load.ts";

/** The gutter of the file view and that of diffs are shown, or not, until somebody changes it. */
const wanted = (name: string, otherwise: boolean) => {
  const kept = localStorage.getItem(name);
  return signal(kept ? kept === "on" : otherwise);
};
export const inFiles = wanted("stet-blame-files", !matchMedia("(max-width: 760px)").matches);
export const inDiffs = wanted("stet-blame-diffs", false);

export function toggle(which: typeof inFiles): void {
  which.value = !which.value;
  localStorage.setItem(which === inFiles ? "stet-blame-files" : "stet-blame-diffs", which.value ? "on" : "off");
}

/** Switch shows or hides a gutter. */
export function Switch({ which }: { which: typeof inFiles }) {
  return (
    <button type="button" class="blame-switch" aria-pressed={which.value} title="Which turn and prompt each line came from (b)" onClick={() => toggle(which)}>
      Blame
    </button>
  );
}

/** useFileBlame loads the marks of a file while they are wanted. */
export function useFileBlame(ref: string, path: string) {
  const on = inFiles.value;
  return useLoad(async (signal) => (on ? await api.checkpoints.blame({ ref, path }, { signal }) : undefined), [ref, path, on], true);
}

/** link is where the words of a mark are, or undefined. */
function link(m: Mark): string | undefined {
  const o = m.origin;
  return o.kind === "agent" && o.conversation ? to.conversation(o.conversation, "transcript", { turn: o.turn || undefined }) : undefined;
}

/** Label is a mark; its title says everything that is known. */
function Label({ mark, text, style, pick }: { mark: Mark; text: string; style?: Record<string, string>; pick?: (m: Mark) => void }) {
  const words = about(mark);
  const props = { class: `mark shade${shade(mark.origin)}`, style, title: words, onMouseEnter: () => pick?.(mark), onFocus: () => pick?.(mark) };
  const href = link(mark);
  if (!href) return <span {...props}>{text}</span>;
  return (
    <a {...props} href={href}>
      {text}
    </a>
  );
}

/** Gutter shows marks beside the lines of a file. */
export function Gutter({ all, lines }: { all: readonly Mark[]; lines: number }) {
  const [picked, setPicked] = useState<Mark>();
  return (
    <>
      <div class="gutter">
        {all
          .filter((m) => m.line <= lines)
          .map((m) => (
            <Label key={m.line} mark={m} text={short(m.origin)} pick={setPicked} style={{ height: `${Math.min(m.lines, lines - m.line + 1)}lh` }} />
          ))}
      </div>
      {picked && <p class="picked">{about(picked)}</p>}
    </>
  );
}

/** useDiffBlame loads the marks of both sides of files when they come into view. */
export function useDiffBlame(from: string, to: string, workspace: string) {
  const on = inDiffs.value;
  const [read, setRead] = useState<ReadonlyMap<string, readonly Mark[]>>(new Map());
  const queue = useRef<Queue | undefined>(undefined);
  useEffect(() => {
    queue.current = undefined;
    setRead(new Map());
    if (!on) return;
    const abort = new AbortController();
    const ask = async (keys: string[]) => {
      for (const key of keys) {
        const [ref, path] = key.startsWith("-") ? [from, key.slice(1)] : [to, key.slice(1)];
        // A file without an answer has no marks: it may be a link, or of an import.
        const res = await api.checkpoints.blame({ ref, path, workspace }, { signal: abort.signal }).catch(() => undefined);
        if (abort.signal.aborted) return;
        setRead((all) => new Map([...all, [key, res ? marks(res.ranges, res.origins) : []]]));
      }
    };
    queue.current = new Queue(ask, 1);
    return () => abort.abort();
  }, [from, to, workspace, on]);
  const want = (files: readonly FileDiff[]) =>
    queue.current?.want(
      files
        .filter((f) => f.pathBytes.length === 0 && !f.binary)
        .flatMap((f) => [...(f.action.startsWith("del") ? [] : [`+${f.path}`]), ...(/^(add|creat)/.test(f.action) ? [] : [`-${f.path}`])]),
    );
  const of = (path: string, side: "+" | "-", line: number) => markOf(read.get(side + path) ?? [], line);
  return { on, want, of };
}

export type DiffBlame = ReturnType<typeof useDiffBlame>;

/** sides are the marks of a row of a diff: one, or one for each column. */
export function sides(blame: DiffBlame, path: string, row: Exclude<Row, { kind: "gap" }>): (Mark | undefined)[] {
  if (row.kind === "line") return [row.cell.op === "-" ? blame.of(path, "-", row.before) : blame.of(path, "+", row.after)];
  return [row.left ? blame.of(path, "-", row.left.number) : undefined, row.right ? blame.of(path, "+", row.right.number) : undefined];
}

/** MarkCell is the mark of a line of a diff. */
export function MarkCell({ mark, narrow }: { mark: Mark | undefined; narrow?: boolean }) {
  if (!mark) return <span class="mark" />;
  return <Label mark={mark} text={narrow ? mark.origin.name || "now" : short(mark.origin)} />;
}
