import type { CheckpointFile } from "@gen/stet/v1/checkpoint_service_pb";
import { useMemo, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useListKeys } from "../focus.ts";
import { bytes, count, hex } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { useLoad } from "../load.ts";
import { query } from "../nav.ts";
import { Copy, Empty, Html, Trouble, Waiting } from "../ui.tsx";
import { List } from "../virtual.tsx";
import type { Shown } from "./shown.ts";

/** checkpointOf is the checkpoint whose files are shown: the selected or the newest. */
export function checkpointOf(shown: Shown) {
  return (shown.entry ?? shown.timeline.entries.find((e) => e.current) ?? shown.timeline.entries.find((e) => !e.gone))?.checkpoint;
}

export default function Files({ shown }: { shown: Shown }) {
  const c = checkpointOf(shown);
  const [filter, setFilter] = useState("");
  const files = useLoad(async (signal) => (c ? await api.checkpoints.files({ ref: c.id }, { signal }) : undefined), [c?.id]);
  useListKeys("Files", ".files a.file");
  const list = useMemo(() => (files.value?.files ?? []).filter((f) => f.kind !== "directory" && f.kind !== "dir" && f.path.toLowerCase().includes(filter.toLowerCase())), [files.value, filter]);
  if (!c) {
    return (
      <Empty title="No files">
        <p>This conversation has no checkpoints of a workspace.</p>
      </Empty>
    );
  }
  if (files.problem) return <Trouble problem={files.problem} again={files.again} />;
  if (!files.value) return <Waiting />;
  const wanted = query.value.get("path") ?? "";
  const path = list.some((f) => f.path === wanted) ? wanted : "";
  return (
    <div class="files">
      <div class="file-list">
        <input type="search" placeholder={`Filter ${count(list.length, "file")}`} aria-label="Filter files" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        <List
          count={list.length}
          estimate={28}
          role="list"
          label="Files"
          keyOf={(i) => list[i].path}
          render={(i) => (
            <a class="file" href={to.conversation(shown.info.id, "files", { at: shown.entry?.checkpoint?.id, path: list[i].path })} aria-current={list[i].path === path ? "true" : undefined}>
              <span class="path">{list[i].path}</span>
              <span class="muted">{bytes(list[i].size)}</span>
            </a>
          )}
        />
        {files.value.truncated && <p class="muted">The list is truncated: there are too many files.</p>}
      </div>
      {path ? <FileView key={path + c.id} reference={c.id} path={path} /> : <Choose files={list} />}
    </div>
  );
}

function Choose({ files }: { files: CheckpointFile[] }) {
  const total = files.reduce((sum, f) => sum + Number(f.size), 0);
  return (
    <Empty title="Choose a file">
      <p>
        {count(files.length, "file")}, {bytes(total)}, at this checkpoint.
      </p>
    </Empty>
  );
}

function FileView({ reference, path }: { reference: string; path: string }) {
  const file = useLoad((signal) => api.checkpoints.file({ ref: reference, path }, { signal }), [reference, path]);
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
      </div>
      {f.binary ? (
        <Empty title="Binary file">
          <p>This file is not text. Use stet show to print it.</p>
        </Empty>
      ) : (
        <div class="code" tabIndex={0} role="region" aria-label={`Content of ${path}`}>
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
