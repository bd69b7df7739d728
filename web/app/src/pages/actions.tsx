import type { Operation } from "@gen/stet/v1/checkpoint_service_pb";
import type { TimelineEntry } from "@gen/stet/v1/page_service_pb";
import { useState } from "preact/hooks";
import * as api from "../api.ts";
import { formats, saveExport } from "../export.ts";
import { lazy } from "../lazy.tsx";
import { command } from "../lib/command.ts";
import { target } from "../lib/timeline.ts";
import { to } from "../lib/route.ts";
import { useLoad } from "../load.ts";
import { go, setQuery } from "../nav.ts";
import { Command, Dialog, Menu, say } from "../ui.tsx";
import type { Shown } from "./shown.ts";

const Confirm = lazy(() => import("./confirm.tsx"));

/** workspaceOf is the directory of a conversation's files, or empty. */
export function workspaceOf(shown: Shown): string {
  return shown.entry?.checkpoint?.workspace || shown.info.workspace || shown.timeline.entries[0]?.checkpoint?.workspace || "";
}

/** Actions are what can be done with a conversation, at the selected checkpoint or the
 * newest. */
export function Actions({ shown, reload }: { shown: Shown; reload: () => void }) {
  const workspace = workspaceOf(shown);
  const back = target(shown.timeline.entries, shown.entry);
  // Rewinds add entries: the operations are asked for again.
  const moves = useLoad(async (signal) => (workspace ? (await api.checkpoints.operations({ workspace }, { signal })).operations : []), [workspace, shown.timeline], true);
  const undoable = moves.value?.find((o) => o.canUndo);
  const redoable = moves.value?.find((o) => o.canRedo);
  const [asked, setAsked] = useState<{ op: Operation; what: "undo" | "redo" }>();
  const [resuming, setResuming] = useState(false);
  return (
    <div class="actions" role="group" aria-label="Actions">
      <button type="button" class="primary" disabled={!back} title={back ? "Go back to an earlier point; the plan is shown first" : "There is no checkpoint to go back to"} onClick={() => back && setQuery({ rewind: back.checkpoint!.id }, false)}>
        Rewind…
      </button>
      <button type="button" disabled={!undoable} title={undoable ? `Undo: ${undoable.summary}` : "Nothing was rewound in this workspace"} onClick={() => undoable && setAsked({ op: undoable, what: "undo" })}>
        Undo…
      </button>
      {redoable && (
        <button type="button" title={`Redo: ${redoable.summary}`} onClick={() => setAsked({ op: redoable, what: "redo" })}>
          Redo…
        </button>
      )}
      <button type="button" title="Start another conversation that continues here" onClick={() => void fork(shown, shown.entry)}>
        Fork
      </button>
      <ExportMenu id={shown.info.id} />
      <button type="button" title="Go on in the agent's own program" onClick={() => setResuming(true)}>
        Resume…
      </button>
      {asked && <Confirm {...asked} onClose={() => setAsked(undefined)} reload={reload} />}
      {resuming && <Resume shown={shown} onClose={() => setResuming(false)} />}
    </div>
  );
}

/** ExportMenu saves the conversation in one of the formats. */
function ExportMenu({ id }: { id: string }) {
  const save = async (format: string) => {
    try {
      await saveExport(id, format);
    } catch (err) {
      const p = api.problemOf(err);
      say({ text: `${p.title}: ${p.detail}`, bad: true });
    }
  };
  return (
    <Menu label="Export">
      {formats.map((f) => (
        <button type="button" key={f} onClick={() => void save(f)}>
          {f}
        </button>
      ))}
    </Menu>
  );
}

/** Resume shows how the conversation goes on in the agent's own program. */
function Resume({ shown, onClose }: { shown: Shown; onClose: () => void }) {
  const { info, entry } = shown;
  const at = { store: api.storeDir.value, workspace: workspaceOf(shown) };
  const session = !!info.labels.source_path;
  return (
    <Dialog title="Resume" onClose={onClose}>
      {session ? (
        <>
          <p>
            This continues the conversation in {info.agent || "its agent"}
            {entry ? `, after ${entry.name}` : " where it is now"}. The agent's own session stays as it was; a copy goes on. In a terminal:
          </p>
          <p>
            <Command text={command(at, "resume", ...(entry ? [entry.name] : []), "-c", info.id)} />
          </p>
          <p class="muted">Files are not changed. Rewind first if they should go back, too.</p>
        </>
      ) : (
        <>
          <p>No agent has a session of this conversation on this machine, so there is none to continue. Its files are in</p>
          <p>{at.workspace ? <Command text={`cd ${at.workspace}`} /> : "no directory that is known"}</p>
          <p class="muted">Fork starts another conversation here that ends at the selected point. Export writes everything that was said, for an agent to read.</p>
        </>
      )}
      <footer>
        <span class="spring" />
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}

/** fork creates a conversation that continues from a checkpoint, or from the newest
 * state. */
export async function fork(shown: Shown, entry?: TimelineEntry): Promise<void> {
  try {
    const seq = entry ? await saveOf(shown.info.id, entry) : shown.info.head;
    if (!seq) {
      say({ text: "There is no state of the conversation to fork from here.", bad: true });
      return;
    }
    const res = await api.conversations.fork({ id: shown.info.id, seq, title: `${shown.info.title} (fork)` });
    say({ text: "Forked. This is the new conversation." });
    go(to.conversation(res.conversation!.id));
  } catch (err) {
    const p = api.problemOf(err);
    say({ text: `${p.title}: ${p.detail}`, bad: true });
  }
}

/** saveOf finds the save with the state of a checkpoint; 0 if there is none. */
async function saveOf(id: string, entry: TimelineEntry): Promise<bigint> {
  const root = String(entry.checkpoint!.root);
  for (let cursor = ""; ; ) {
    const history = await api.conversations.history({ id, page: { limit: 1000, cursor } });
    const save = history.saves.find((s) => String(s.root) === root);
    if (save) return save.seq;
    cursor = history.nextCursor;
    if (!cursor) return 0n;
  }
}
