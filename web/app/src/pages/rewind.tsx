import type { NotKept, PlanRewindResponse, PlannedFile } from "@gen/stet/v1/checkpoint_service_pb";
import type { TimelineEntry } from "@gen/stet/v1/page_service_pb";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import * as api from "../api.ts";
import { type Place, command } from "../lib/command.ts";
import { clock, count, oneLine } from "../lib/format.ts";
import { type Choice, choices, sorted } from "../lib/plan.ts";
import { useLoad } from "../load.ts";
import { setQuery } from "../nav.ts";
import { Command, Dialog, Lines, Trouble, Waiting, say } from "../ui.tsx";
import { Hunks } from "./hunks.tsx";
import type { Shown } from "./shown.ts";

type Scope = "both" | "files" | "conversation";

/** RewindSheet shows what a rewind would do, and does exactly that: the server
 * refuses if anything has changed since the plan was made. */
export default function RewindSheet({ shown, reference, onClose, reload }: { shown: Shown; reference: string; onClose: () => void; reload: () => void }) {
  const entry = shown.timeline.entries.find((e) => e.checkpoint?.id === reference);
  // Some checkpoints name no state of the conversation: the plan decides whether it moves.
  const stateless = entry?.checkpoint?.root.length === 0;
  const [scope, setScope] = useState<Scope>("both");
  const [chosen, setChosen] = useState<Record<string, Choice>>({});
  const [exactly, setExactly] = useState(false);
  const [evenIfRunning, setEvenIfRunning] = useState(false);
  const exact = exactly && scope !== "conversation";
  const [doing, setDoing] = useState(false);
  const [failed, setFailed] = useState<api.Problem>();
  const workspace = entry?.checkpoint?.workspace ?? shown.info.workspace;
  const request = {
    ref: reference,
    workspace,
    conversation: shown.info.id,
    files: scope === "files" || (scope === "both" && !stateless),
    withConversation: scope === "conversation" || (scope === "both" && !stateless),
    choices: exact ? {} : chosen, // exact leaves no choice
    exact,
  };
  const plan = useLoad((signal) => api.checkpoints.planRewind(request, { signal }), [reference, scope, exact, JSON.stringify(chosen)], true);
  const apply = async () => {
    setDoing(true);
    setFailed(undefined);
    try {
      const done = await api.checkpoints.rewind({ plan: request, planToken: plan.value!.planToken, evenIfRunning });
      onClose();
      reload();
      say(
        {
          text: `Rewound to ${entry?.name ?? "the checkpoint"}: ${count(done.files, "file")} changed. The previous state was saved.`,
          action: done.operation ? { label: "Undo", run: () => void undo(workspace, reload) } : undefined,
        },
        60_000,
      );
    } catch (err) {
      setFailed(api.problemOf(err));
      plan.again();
    }
    setDoing(false);
  };
  const p = plan.value;
  // Nothing is left open: a plan also says why the conversation does not go along.
  const stays = scope === "files" ? "stays as it is: only the files go back" : stateless ? `stays as it is: ${entry!.name} has no state of it${entry!.checkpoint!.turn <= 1 && entry!.checkpoint!.side === 1 ? ", because it was made before the first turn was saved" : ""}` : scope === "both" ? "is at this point already" : undefined;
  const running = p?.atWork.filter((t) => t.processes.length > 0) ?? [];
  const title = entry ? `Rewind to ${entry.name}` : "Rewind";
  return (
    <Dialog title={title} onClose={onClose} wide>
      <label class="target">
        To{" "}
        <select value={reference} onChange={(e) => setQuery({ rewind: e.currentTarget.value })}>
          {shown.timeline.entries
            .filter((e) => !e.quiet || e.checkpoint!.id === reference)
            .map((e) => (
              <option key={e.checkpoint!.id} value={e.checkpoint!.id}>
                {placeText(e)}
              </option>
            ))}
        </select>
      </label>
      <div class="segments" role="group" aria-label="What to rewind">
        {(["both", "files", "conversation"] as const).map((s) => (
          <button type="button" key={s} aria-pressed={scope === s} disabled={stateless && s === "conversation"} onClick={() => setScope(s)}>
            {s === "both" ? "Files and conversation" : s === "files" ? "Files only" : "Conversation only"}
          </button>
        ))}
      </div>
      <label class="switch">
        <input type="checkbox" checked={exact} disabled={scope === "conversation"} onChange={(e) => setExactly(e.currentTarget.checked)} /> Exactly these files{" "}
        <span class="muted">Everybody's changes since then are taken back, yours too. The present is saved first.</span>
      </label>
      {failed && <Trouble problem={failed} />}
      {plan.problem && <Trouble problem={plan.problem} again={plan.again} />}
      {!p && !plan.problem && <Waiting what="Planning" />}
      {p && <Plan plan={p} chosen={chosen} choose={(path, c) => setChosen({ ...chosen, [path]: c })} stays={stays} />}
      {running.length > 0 && (
        <label class="switch warn">
          <input type="checkbox" checked={evenIfRunning} onChange={(e) => setEvenIfRunning(e.currentTarget.checked)} /> Rewind although {running.map((t) => `${t.processes[t.processes.length - 1].command} (pid ${t.processes[t.processes.length - 1].pid})`).join(", ")} is at work here{" "}
          <span class="muted">It may change files again at once.</span>
        </label>
      )}
      <footer>
        {p?.needsChoice && <span class="warn">Choose a resolution for each conflict.</span>}
        <span class="spring" />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="primary" disabled={!p || p.needsChoice || (running.length > 0 && !evenIfRunning) || doing || plan.busy || nothing(p)} onClick={apply}>
          {doing ? "Rewinding…" : p && nothing(p) ? "Nothing to do" : "Rewind"}
        </button>
      </footer>
      <p class="muted terminal">
        In a terminal: <Command text={terminal({ store: api.storeDir.value, workspace }, entry?.name ?? reference, shown.info.id, scope, exact, Object.values(chosen))} />
      </p>
    </Dialog>
  );
}

/** placeText says where a checkpoint is in the conversation. */
function placeText(e: TimelineEntry): string {
  const c = e.checkpoint!;
  const turn = c.turn > 0 ? `, ${c.side === 1 ? "before" : "after"} turn ${c.turn}` : "";
  return `${e.name}, ${clock(Number(c.timeMs))}${turn}${e.ask ? ` “${oneLine(e.ask, 60)}”` : ""}${e.gone ? " (rewound)" : ""}`;
}

/** terminal is the command that does the same; conflicts with several resolutions are
 * asked about there. */
function terminal(at: Place, name: string, conversation: string, scope: Scope, exact: boolean, chosen: Choice[]): string {
  const words = ["rewind", name];
  if (/^i\d/.test(name)) words.push("-c", conversation); // numbers of imported ones are the conversation's
  if (scope !== "both") words.push(`--${scope}`);
  if (exact) words.push("--exact");
  else if (new Set(chosen).size === 1) words.push(`--${chosen[0]}`);
  return command(at, ...words);
}

const nothing = (p: PlanRewindResponse) => sorted(p.files).changes.length === 0 && !p.conversationEffect;

/** undo undoes the last rewind of a workspace. */
export async function undo(workspace: string, reload: () => void, evenIfRunning = false): Promise<void> {
  try {
    const done = await api.checkpoints.undo({ workspace, evenIfRunning });
    say({ text: `Undone: ${count(done.files, "file")} changed back.`, action: { label: "Redo", run: () => void redo(workspace, reload) } });
  } catch (err) {
    refused(err, "Undo anyway", () => void undo(workspace, reload, true));
  }
  reload();
}

/** redo repeats what was undone. */
export async function redo(workspace: string, reload: () => void, evenIfRunning = false): Promise<void> {
  try {
    const done = await api.checkpoints.redo({ workspace, evenIfRunning });
    say({ text: `Redone: ${count(done.files, "file")} changed.`, action: { label: "Undo", run: () => void undo(workspace, reload) } });
  } catch (err) {
    refused(err, "Redo anyway", () => void redo(workspace, reload, true));
  }
  reload();
}

/** refused says why nothing was changed, and offers to go on where a process is at work. */
function refused(err: unknown, label: string, again: () => void): void {
  const p = api.problemOf(err);
  if (p.detail.startsWith("at work in the workspace")) say({ text: `Not done, ${p.detail.split(";")[0]}.`, bad: true, action: { label, run: again } });
  else say({ text: `${p.title}: ${p.detail}`, bad: true });
}

/** Plan shows what a rewind does. Without choose, conflicts cannot be resolved. */
export function Plan({ plan, chosen, choose, stays }: { plan: PlanRewindResponse; chosen: Record<string, Choice>; choose?: (path: string, c: Choice) => void; stays?: string }) {
  const { changes, conflicts, kept } = sorted(plan.files);
  return (
    <div class="plan" tabIndex={0} role="region" aria-label="Plan">
      {/* Conflicts come first: there may be thousands of changes. */}
      {conflicts.length > 0 && (
        <section>
          <h3>{conflicts.length === 1 ? "Conflict" : "Conflicts"}</h3>
          <ul class="plan-files">
            {conflicts.map((f) => (
              <FileLine key={f.path} file={f}>
                {choose && <Chooser file={f} chosen={chosen[f.path]} choose={choose} />}
              </FileLine>
            ))}
          </ul>
        </section>
      )}
      {conflicts.length > 0 && changes.length > 0 && <h3>{changes.length === 1 ? "Change" : "Changes"}</h3>}
      {changes.length > 0 && (
        <ul class="plan-files">
          {changes.map((f) => (
            <FileLine key={f.path} file={f}>
              {choose && chosen[f.path] && <Chooser file={f} chosen={chosen[f.path]} choose={choose} />}
              {f.merged && f.merge.length > 0 && <Hunks hunks={f.merge} />}
            </FileLine>
          ))}
        </ul>
      )}
      <section>
        <h3>Left alone</h3>
        <p>
          {kept.slice(0, 6).map((f) => (
            <span key={f.path} class="kept">
              <code>{f.path}</code>
              {f.about && <span class="muted"> ({f.about})</span>},{" "}
            </span>
          ))}
          {kept.length > 6 && `${kept.length - 6} more, `}
          {plan.untouched > 0 && `${count(plan.untouched, "other file")}, `}
          <code>.git</code>
        </p>
        {plan.notKept && <p class="muted">{notKept(plan.notKept)}</p>}
        {plan.notCaptured.length > 0 && <p class="muted">Not captured: {plan.notCaptured.slice(0, 5).map((s) => `${s.path} (${s.reason})`).join(", ")}</p>}
      </section>
      {plan.atWork.length > 0 && (
        <section>
          <h3>At work</h3>
          {plan.atWork.map((t) => (
            <p key={`${t.conversation} ${t.turn}`}>
              <code>{t.conversation}</code>
              {t.turn > 0 && `, turn ${t.turn}`}: it may change files again
            </p>
          ))}
        </section>
      )}
      {(plan.conversationEffect || stays) && (
        <section>
          <h3>Conversation</h3>
          <p>It {plan.conversationEffect || stays}.</p>
        </section>
      )}
    </div>
  );
}

/** notKept says what an undo of the rewind does not bring back. */
function notKept(n: NotKept): string {
  const kinds: [string, bigint, string][] = [
    ["hard-links", n.hardLinks, "hard links"],
    ["attributes", n.attributes, "extended attributes"],
    ["owner", n.owners, "the owner"],
  ];
  const parts = kinds
    .filter(([, files]) => files > 0n)
    .map(([what, files, words]) => {
      const named = n.examples.filter((f) => f.what === what).map((f) => f.path);
      const more = Number(files) - named.length;
      return `${words} of ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    });
  return `An undo does not bring back: ${parts.join("; ")}`;
}

function FileLine({ file, children }: { file: PlannedFile; children?: ComponentChildren }) {
  return (
    <li>
      <span class={`verb ${file.action}`}>{file.action === "conflict" ? "!" : file.action}</span>
      <code class="path">{file.path}</code>
      <Lines added={file.add} removed={file.del} />
      {file.merged && <span class="tag good">merged</span>}
      <span class="muted why">{file.about}</span>
      {file.action === "conflict" && file.noMerge && <span class="muted why">No merge: {file.noMerge}.</span>}
      {children}
    </li>
  );
}

function Chooser({ file, chosen, choose }: { file: PlannedFile; chosen: Choice | undefined; choose: (path: string, c: Choice) => void }) {
  return (
    <fieldset class="chooser">
      <legend class="visually-hidden">Resolution for {file.path}</legend>
      {choices.map((c) => (
        <label key={c.value} title={c.value === "merge" && file.noMerge ? file.noMerge : c.about}>
          <input type="radio" name={`choice ${file.path}`} checked={chosen === c.value} disabled={c.value === "merge" && !!file.noMerge} onChange={() => choose(file.path, c.value)} /> {c.label}
        </label>
      ))}
    </fieldset>
  );
}
