import type { Operation } from "@gen/stet/v1/checkpoint_service_pb";
import { useState } from "preact/hooks";
import * as api from "../api.ts";
import { useKeys } from "../keys.ts";
import { baseName } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { useEvery, useLoad } from "../load.ts";
import { Copy, Dialog, Empty, Time, Trouble, Waiting } from "../ui.tsx";
import { List } from "../virtual.tsx";
import { redo, undo } from "./rewind.tsx";

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

function Confirm({ op, what, onClose, reload }: { op: Operation; what: "undo" | "redo"; onClose: () => void; reload: () => void }) {
  const run = async () => {
    onClose();
    await (what === "undo" ? undo : redo)(op.workspace, reload);
  };
  return (
    <Dialog title={what === "undo" ? `Undo ${op.id}` : `Redo ${op.id}`} onClose={onClose}>
      <p>{op.summary}</p>
      <p class="muted">
        {what === "undo" ? "The files and the conversation return to their state before it." : "It is applied again."} Files that changed since are left alone and reported. The current state is saved first, so you can undo this too.
      </p>
      <p class="path">{op.workspace}</p>
      <footer>
        <span class="spring" />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="primary" onClick={run}>
          {what === "undo" ? "Undo" : "Redo"}
        </button>
      </footer>
    </Dialog>
  );
}
