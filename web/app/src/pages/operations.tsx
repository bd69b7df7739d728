import type { Operation } from "@gen/stet/v1/checkpoint_service_pb";
import { useState } from "preact/hooks";
import * as api from "../api.ts";
import { useKeys } from "../keys.ts";
import { baseName } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { useEvery, useLoad } from "../load.ts";
import { Copy, Empty, Time, Trouble, Waiting } from "../ui.tsx";
import { List } from "../virtual.tsx";
import Confirm from "./confirm.tsx";

/** OperationsPage lists the operations on workspaces and conversations, and undoes
 * them. */
export default function OperationsPage() {
  document.title = "Operations · stet";
  const log = useLoad((signal) => api.checkpoints.operations({}, { signal }).then((r) => r.operations), [], true);
  const [asked, setAsked] = useState<{ op: Operation; what: "undo" | "redo" }>();
  useEvery(4000, log.poll);
  const next = (what: "undo" | "redo") => log.value?.find((o) => (what === "undo" ? o.canUndo : o.canRedo));
  const ask = (what: "undo" | "redo") => {
    const op = next(what);
    if (op) setAsked({ op, what });
  };
  useKeys(
    "Operations",
    [
      { keys: "u", about: "Undo the newest", run: () => ask("undo") },
      { keys: "r", about: "Redo", run: () => ask("redo") },
    ],
  );
  if (log.problem && !log.value) return <Trouble whole problem={log.problem} again={log.again} />;
  if (!log.value) return <Waiting />;
  const ops = log.value;
  return (
    <>
      <div class="page-head">
        <h1>Operations</h1>
        <span class="muted">changes of workspaces and conversations, newest first</span>
      </div>
      {ops.length === 0 ? (
        <Empty title="No operations yet">
          <p>Rewinds, undos, pins, deletions and collections are listed here. Most of them can be undone.</p>
        </Empty>
      ) : (
        <List count={ops.length} estimate={44} role="list" label="Operations" class="operations-list" keyOf={(i) => ops[i].id} render={(i) => <OperationRow op={ops[i]} ask={(what) => setAsked({ op: ops[i], what })} />} />
      )}
      {asked && <Confirm {...asked} onClose={() => setAsked(undefined)} reload={log.again} />}
    </>
  );
}

function OperationRow({ op, ask }: { op: Operation; ask: (what: "undo" | "redo") => void }) {
  return (
    <div class="operation">
      <code>{op.id}</code>
      <span class={`tag kind-${op.kind}`}>{op.kind}</span>
      <span class="summary">{op.summary || op.kind}</span>
      <span class="path" title={op.workspace}>
        {op.workspace ? baseName(op.workspace) : ""}
      </span>
      <span class="muted">
        {op.author} <Time ms={op.timeMs} />
      </span>
      <span class="operation-actions">
        {op.conversation && op.saved && <a href={to.conversation(op.conversation, "transcript", { at: op.saved })}>state before</a>}
        {op.canUndo && (
          <button type="button" onClick={() => ask("undo")}>
            Undo
          </button>
        )}
        {op.canRedo && (
          <button type="button" onClick={() => ask("redo")}>
            Redo
          </button>
        )}
        <Copy text={op.id} label="name of the operation" />
      </span>
    </div>
  );
}
