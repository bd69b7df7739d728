import type { Operation } from "@gen/stet/v1/checkpoint_service_pb";
import { Dialog } from "../ui.tsx";
import { redo, undo } from "./rewind.tsx";

/** Confirm asks before an operation is undone or done again. */
export default function Confirm({ op, what, onClose, reload }: { op: Operation; what: "undo" | "redo"; onClose: () => void; reload: () => void }) {
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
