import { useState } from "preact/hooks";
import * as api from "../api.ts";
import { command } from "../lib/command.ts";
import { type Hunk, ranges } from "../lib/diff.ts";
import { count } from "../lib/format.ts";
import { type Choice, sorted } from "../lib/plan.ts";
import { useLoad } from "../load.ts";
import { Command, Dialog, Trouble, Waiting, say } from "../ui.tsx";
import { Plan, undo } from "./rewind.tsx";

/** Part is what to restore: a file, or the lines of one hunk of it. */
export interface Part {
  path: string;
  hunk?: Hunk;
}

interface Props {
  part: Part;
  /** The checkpoint that has the part, its name, and the other side of the diff. */
  from: string;
  name: string;
  to: string;
  workspace: string;
  conversation: string;
  onClose: () => void;
  done: () => void;
}

/** RestoreSheet brings back one file or some lines of it, by the same plan as a rewind. */
export default function RestoreSheet({ part, from, name, to, workspace, conversation, onClose, done }: Props) {
  const [chosen, setChosen] = useState<Record<string, Choice>>({});
  const [exact, setExact] = useState(false);
  const [doing, setDoing] = useState(false);
  const [failed, setFailed] = useState<api.Problem>();
  const request = part.hunk
    ? { ref: from, workspace, conversation, files: true, lines: { path: part.path, from: to, ranges: [ranges(part.hunk)] } }
    : { ref: from, workspace, conversation, files: true, paths: [part.path], exact, choices: exact ? {} : chosen };
  const plan = useLoad((signal) => api.checkpoints.planRewind(request, { signal }), [from, to, part, exact, JSON.stringify(chosen)], true);
  const p = plan.value;
  const { changes, conflicts, kept } = sorted(p?.files ?? []);
  const apply = async () => {
    setDoing(true);
    setFailed(undefined);
    try {
      await api.checkpoints.rewind({ plan: request, planToken: p!.planToken });
      onClose();
      say({ text: `Restored ${part.hunk ? "lines of " : ""}${part.path} from ${name}. The previous state was saved.`, action: { label: "Undo", run: () => void undo(workspace, done) } }, 60_000);
      done();
    } catch (err) {
      setFailed(api.problemOf(err));
      plan.again();
    }
    setDoing(false);
  };
  return (
    <Dialog title={part.hunk ? `Restore lines from ${name}` : `Restore a file from ${name}`} onClose={onClose} wide>
      <p>
        <code class="path">{part.path}</code>
        {part.hunk && <span class="muted"> {count(part.hunk.lines.filter((l) => l.op === "-").length, "line")} come back, {count(part.hunk.lines.filter((l) => l.op === "+").length, "line")} go. The rest of the file stays as it is now.</span>}
      </p>
      {!part.hunk && (
        <label class="switch">
          <input type="checkbox" checked={exact} onChange={(e) => setExact(e.currentTarget.checked)} /> Exactly this version <span class="muted">Everybody's changes since then are taken back, yours too. The present is saved first.</span>
        </label>
      )}
      {failed && <Trouble problem={failed} />}
      {plan.problem && <Trouble problem={plan.problem} again={plan.again} />}
      {!p && !plan.problem && <Waiting what="Planning" />}
      {p && <Plan plan={p} chosen={chosen} choose={part.hunk ? undefined : (path, c) => setChosen({ ...chosen, [path]: c })} />}
      {part.hunk && conflicts.length > 0 && <p class="warn">These lines were changed since. Restore the whole file instead, or edit it by hand.</p>}
      <footer>
        {p && changes.length === 0 && conflicts.length === 0 && <span class="muted">{kept.length > 0 ? "The plan leaves this file alone." : "The file has this version already."}</span>}
        <span class="spring" />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="primary" disabled={!p || p.needsChoice || doing || plan.busy || changes.length === 0} onClick={apply}>
          {doing ? "Restoring…" : "Restore"}
        </button>
      </footer>
      {!part.hunk && (
        <p class="muted terminal">
          In a terminal: <Command text={command({ store: api.storeDir.value, workspace }, "rewind", name, ...(exact ? ["--exact"] : chosen[part.path] ? [`--${chosen[part.path]}`] : []), "--", part.path)} />
        </p>
      )}
    </Dialog>
  );
}
