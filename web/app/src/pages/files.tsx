import type { CheckpointFilesResponse } from "@gen/stet/v1/checkpoint_service_pb";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useListKeys } from "../focus.ts";
import { useKeys } from "../keys.ts";
import { marks } from "../lib/blame.ts";
import { baseName, bytes, count, hex } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { parents, treeRows } from "../lib/tree.ts";
import { useLoad } from "../load.ts";
import { query } from "../nav.ts";
import { Copy, Empty, Html, Trouble, Waiting } from "../ui.tsx";
import { List } from "../virtual.tsx";
import { Gutter, Switch, inFiles, toggle, useFileBlame } from "./blame.tsx";
import type { Shown } from "./shown.ts";

/** checkpointOf is the checkpoint whose files are shown: the selected or the newest. */
export function checkpointOf(shown: Shown) {
  return (shown.entry ?? shown.timeline.entries.find((e) => e.current) ?? shown.timeline.entries.find((e) => !e.gone))?.checkpoint;
}

/** useTree reads directories when they are opened. */
function useTree(ref: string | undefined, wanted: string) {
  const [read, setRead] = useState<ReadonlyMap<string, CheckpointFilesResponse>>(new Map());
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState<api.Problem>();
  const shown = useRef(ref);
  const load = async (dirs: string[]) => {
    if (!ref) return;
    try {
      const found = await Promise.all(dirs.map(async (path) => [path, await api.checkpoints.files({ ref, path, shallow: true })] as const));
      if (shown.current === ref) setRead((all) => new Map([...all, ...found]));
    } catch (err) {
      if (shown.current === ref) setProblem(api.problemOf(err));
    }
  };
  // What was open stays open at another checkpoint, as far as it is there.
  const start = () => {
    shown.current = ref;
    setProblem(undefined);
    setRead(new Map());
    setOpen(new Set(parents(wanted)));
    void load(["", ...parents(wanted)]);
  };
  useEffect(start, [ref]);
  const toggle = (dir: string) => {
    const next = new Set(open);
    if (!next.delete(dir)) {
      next.add(dir);
      if (!read.has(dir)) void load([dir]);
    }
    setOpen(next);
  };
  return { read, open, toggle, problem, again: start };
}

export default function Files({ shown }: { shown: Shown }) {
  const c = checkpointOf(shown);
  const [filter, setFilter] = useState("");
  const wanted = query.value.get("path") ?? "";
  const tree = useTree(c?.id, wanted);
  const found = useLoad(async (signal) => (c && filter ? await api.checkpoints.files({ ref: c.id, contains: filter }, { signal }) : undefined), [c?.id, filter], true);
  useListKeys("Files", ".files a.file");
  const rows = useMemo(() => {
    if (!filter) return treeRows(new Map([...tree.read].map(([dir, res]) => [dir, res.files])), tree.open);
    return (found.value?.files ?? []).map((entry) => ({ entry, depth: 0, folder: false, open: false }));
  }, [tree.read, tree.open, found.value, filter]);
  if (!c) {
    return (
      <Empty title="No files">
        <p>This conversation has no checkpoints of a workspace.</p>
      </Empty>
    );
  }
  const problem = tree.problem ?? found.problem;
  if (problem) return <Trouble problem={problem} again={tree.again} />;
  const root = tree.read.get("");
  if (!root) return <Waiting />;
  const link = (path: string) => to.conversation(shown.info.id, "files", { at: shown.entry?.checkpoint?.id, path });
  return (
    <div class="files">
      <div class="file-list">
        <input type="search" placeholder={`Filter ${count(root.total, "file")}`} aria-label="Filter files" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        {filter && found.value && <p class="muted file-count">{found.value.total === 0n ? "No file has this in its path." : `${count(found.value.total, "file")}${found.value.truncated ? ", the first are shown" : ""}`}</p>}
        <List
          count={rows.length}
          estimate={28}
          role="list"
          label="Files"
          keyOf={(i) => rows[i].entry.path}
          render={(i) => {
            const { entry, depth, folder, open } = rows[i];
            const inset = { paddingLeft: `${8 + depth * 14}px` };
            if (folder) {
              return (
                <button type="button" class="folder" style={inset} aria-expanded={open} onClick={() => tree.toggle(entry.path)}>
                  <span class="path">
                    <span aria-hidden="true">{open ? "▾" : "▸"}</span> {baseName(entry.path)}/
                  </span>
                  <span class="muted">{count(entry.files, "file")}</span>
                </button>
              );
            }
            return (
              <a class="file" style={inset} href={link(entry.path)} title={entry.path} aria-current={entry.path === wanted ? "true" : undefined}>
                <span class="path">{filter ? entry.path : baseName(entry.path)}</span>
                <span class="muted">{bytes(entry.size)}</span>
              </a>
            );
          }}
        />
        {root.truncated && <p class="muted">The list is truncated: there are too many files.</p>}
      </div>
      {wanted ? <FileView key={wanted + c.id} reference={c.id} path={wanted} /> : <Choose files={root.total} size={root.totalBytes} />}
    </div>
  );
}

function Choose({ files, size }: { files: bigint; size: bigint }) {
  return (
    <Empty title="Choose a file">
      <p>
        {count(files, "file")}, {bytes(size)}, at this checkpoint.
      </p>
    </Empty>
  );
}

function FileView({ reference, path }: { reference: string; path: string }) {
  const file = useLoad((signal) => api.checkpoints.file({ ref: reference, path }, { signal }), [reference, path]);
  const blame = useFileBlame(reference, path);
  const all = useMemo(() => (blame.value ? marks(blame.value.ranges, blame.value.origins) : undefined), [blame.value]);
  useKeys("File", [{ keys: "b", about: "Show where each line came from", run: () => toggle(inFiles) }]);
  if (file.problem) return <Trouble problem={file.problem} again={file.again} />;
  const f = file.value;
  if (!f) return <Waiting />;
  const lines = f.binary ? 0 : f.html.split("\n").length - (f.html.endsWith("\n") ? 1 : 0);
  return (
    <section class="file-view" aria-label={path}>
      <div class="file-head">
        <b class="path">{path}</b>
        <span class="muted">
          {bytes(f.file!.size)} · mode {f.file!.mode.toString(8)}
        </span>
        <Copy text={new TextDecoder().decode(f.content)} label="content" />
        <a href={to.inspect(hex(f.file!.id), "bytes")}>inspect</a>
        {!f.binary && <Switch which={inFiles} />}
      </div>
      {inFiles.value && !f.binary && <BlameNotes problem={blame.problem} forgotten={blame.value?.forgotten} damaged={blame.value?.damaged.length} />}
      {f.binary ? (
        <Empty title="Binary file">
          <p>This file is not text. Use stet show to print it.</p>
        </Empty>
      ) : (
        <div class="code" tabIndex={0} role="region" aria-label={`Content of ${path}`}>
          {all && !blame.problem && <Gutter all={all} lines={lines} />}
          <pre class="numbers" aria-hidden="true">
            {Array.from({ length: lines }, (_, i) => i + 1).join("\n")}
          </pre>
          <Html as="pre" html={f.html} />
        </div>
      )}
      {f.truncated && <p class="muted">Only the beginning is shown.</p>}
    </section>
  );
}

/** BlameNotes says why lines have no origins, and where the history of the file ends. */
function BlameNotes({ problem, forgotten, damaged }: { problem: api.Problem | undefined; forgotten: bigint | undefined; damaged: number | undefined }) {
  if (problem) return <p class="muted blame-note">Where the lines came from is not known: {problem.detail}</p>;
  const notes = [];
  if (forgotten) notes.push(`The history of this file begins here: ${count(forgotten, "checkpoint")} before it ${forgotten === 1n ? "is" : "are"} no longer kept.`);
  if (damaged) notes.push(`${count(damaged, "checkpoint")} cannot be read.`);
  return notes.length > 0 ? <p class="muted blame-note">{notes.join(" ")}</p> : null;
}
