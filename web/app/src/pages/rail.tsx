import type { TimelineEntry, TurnTotal } from "@gen/stet/v1/page_service_pb";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useKeys } from "../keys.ts";
import { baseName, clock, count, duration, oneLine, spentWords, tokens } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { type Lane, isGap, lanes } from "../lib/timeline.ts";
import { setQuery } from "../nav.ts";
import { Empty, Lines, Time, say } from "../ui.tsx";
import { List, type ListHandle } from "../virtual.tsx";
import type { Shown } from "./shown.ts";

/** Rail is the timeline of a conversation: checkpoints, branches, pins, forks. */
export function Rail({ shown, reload }: { shown: Shown; reload: () => void }) {
  const [all, setAll] = useState(false);
  const rows = useMemo(() => lanes(shown.rows, all), [shown.rows, all]);
  const list = useRef<ListHandle>(null);
  const selected = shown.entry?.checkpoint?.id;
  const move = (step: 1 | -1) => {
    const points = rows.filter((r) => !isGap(r.entry));
    const i = points.findIndex((r) => r.entry.checkpoint?.id === selected);
    const next = points[i < 0 ? 0 : Math.max(0, Math.min(i + step, points.length - 1))];
    if (next) setQuery({ at: next.entry.checkpoint!.id, turn: undefined });
  };
  useKeys(
    "Timeline",
    [
      { keys: "j", about: "Older checkpoint", run: () => move(1) },
      { keys: "k", about: "Newer checkpoint", run: () => move(-1) },
      { keys: "p", about: "Pin the selected checkpoint", run: () => selected && document.getElementById("pin-name")?.focus() },
      { keys: "a", about: "Show or hide quiet checkpoints", run: () => setAll(!all) },
    ],
  );
  useEffect(() => {
    const i = rows.findIndex((r) => r.entry.checkpoint?.id === selected);
    if (i > 12) list.current?.show(Math.max(0, i - 4));
  }, []);
  const quiet = shown.timeline.entries.filter((e) => e.quiet).length;
  return (
    <aside class="rail" aria-label="Timeline">
      <div class="rail-head">
        <h2>Timeline</h2>
        {quiet > 0 && (
          <button type="button" class="quiet" aria-pressed={all} onClick={() => setAll(!all)}>
            {all ? "hide" : "show"} {quiet} quiet
          </button>
        )}
      </div>
      {shown.timeline.damaged.length > 0 && (
        <p class="muted" role="status" title={shown.timeline.damaged.map((d) => d.detail).join("\n")}>
          {count(shown.timeline.damaged.length, "checkpoint")} cannot be read; stet fsck names the damage.
        </p>
      )}
      {rows.length === 0 ? (
        <Empty title="No checkpoints">
          <p>This conversation has no checkpoints. Create them with stet run, hooks or the API.</p>
        </Empty>
      ) : (
        <List count={rows.length} estimate={58} role="list" label="Checkpoints, newest first" class="points" handle={list} keyOf={(i) => rows[i].entry.checkpoint!.id} render={(i) => <Point row={rows[i]} shown={shown} reload={reload} />} />
      )}
      {shown.timeline.subagents.length > 0 && (
        <section class="forks" aria-label="Conversations of subagents">
          <h3>Subagents</h3>
          <ul>
            {[...shown.timeline.subagents].reverse().map((s) => (
              <li key={s.id}>
                <a href={to.conversation(s.id)}>{oneLine(s.title) || "subagent"}</a>{" "}
                <span class="muted">
                  {count(s.turns, "turn")}, <Time ms={s.createdMs} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {shown.timeline.forks.length > 0 && (
        <section class="forks" aria-label="Forks">
          <h3>Forks</h3>
          <ul>
            {shown.timeline.forks.map((f) => (
              <li key={f.id}>
                <a href={to.conversation(f.id)}>{oneLine(f.title) || f.id}</a>{" "}
                <span class="muted">
                  {count(f.turns, "turn")}, <Time ms={f.createdMs} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </aside>
  );
}

function Point({ row, shown, reload }: { row: Lane<TimelineEntry>; shown: Shown; reload: () => void }) {
  const e = row.entry;
  const c = e.checkpoint!;
  if (isGap(e)) {
    return (
      <div class={`point gap lane${row.lane}`}>
        <Track row={row} />
        {c.label}
      </div>
    );
  }
  const selected = shown.entry?.checkpoint?.id === c.id;
  const pinned = c.pins.length > 0;
  const mark = pinned ? "P" : e.gone ? "x" : "o";
  const words = what(e);
  return (
    <div class={`point lane${row.lane}${selected ? " selected" : ""}${e.gone ? " gone" : ""}${e.current ? " current" : ""}`}>
      <Track row={row} mark={mark} />
      <a class="point-link" href={to.conversation(shown.info.id, currentTab(), { at: c.id })} aria-current={selected ? "true" : undefined}>
        <span class="point-top">
          <b>{e.name}</b>
          <time dateTime={new Date(Number(c.timeMs)).toISOString()} title={new Date(Number(c.timeMs)).toLocaleString()}>
            {clock(Number(c.timeMs))}
          </time>
          {c.turn > 0 && <span class="muted">turn {c.turn}</span>}
          {c.pins.map((p) => (
            <span key={p} class="tag pin" title={`Pinned in ${c.workspace}`}>
              {p}
            </span>
          ))}
          {e.gone && <span class="tag">rewound</span>}
          {e.current && <span class="tag here">here</span>}
        </span>
        <span class="point-ask">{oneLine(words, 90)}</span>
        <span class="point-facts muted">
          {c.filesChanged > 0 ? `${count(c.filesChanged, "file")} ` : ""}
          <Lines added={c.linesAdded} removed={c.linesRemoved} /> {e.tools}
        </span>
        {e.turnTotal && <Whole total={e.turnTotal} files={c.filesChanged} model={shown.timeline.spent?.model} />}
      </a>
      {selected && <Actions entry={e} shown={shown} reload={reload} />}
    </div>
  );
}

/** Whole shows what a turn of several checkpoints changed, and how long it took, without the
 * model that the head of the page names. */
function Whole({ total, files, model }: { total: TurnTotal; files: number; model: string | undefined }) {
  const several = total.files > files;
  const spent = spentWords(total.spent && { ...total.spent, model: total.spent.model === model ? "" : total.spent.model });
  if (total.interrupted) spent.push("interrupted");
  // A record of the agent also has the time.
  const took = total.durationMs > 0n && !total.spent;
  if (spent.length > 0 && !several) return <span class="point-facts muted spent">{spent.join(" · ")}</span>;
  if (!several && spent.length === 0 && !took && total.contextTokens === 0) return null;
  return (
    <span class={`point-facts muted${spent.length > 0 ? " spent" : ""}`}>
      {several && (
        <>
          turn: {count(total.files, "file")} <Lines added={total.added} removed={total.removed} />{" "}
        </>
      )}
      {took && <>took {duration(Number(total.durationMs))} </>}
      {spent.length > 0 ? spent.join(" · ") : total.contextTokens > 0 && <>{tokens(total.contextTokens, total.contextLimit)}</>}
    </span>
  );
}

function Track({ row, mark }: { row: Lane<TimelineEntry>; mark?: string }) {
  return (
    <span class={`track${row.above ? " above" : ""}${row.below ? " below" : ""}${row.branchAbove ? " branch-above" : ""}${row.joins ? " joins" : ""}`} aria-hidden="true">
      {mark && <span class={`dot ${mark}`} />}
    </span>
  );
}

/** what describes a checkpoint: by its prompt, or by what made it. */
export function what(e: TimelineEntry): string {
  const c = e.checkpoint!;
  const known = (c.side !== 1 && e.ask) || e.operation || c.label;
  if (known) return known;
  switch (c.kind) {
    case "safety":
      return "saved before going back";
    case "rewind":
      return "went back";
    case "manual":
      return "made by hand";
  }
  if (c.side !== 1) return "checkpoint";
  return c.parent ? "changed between turns" : "the beginning";
}

function currentTab() {
  const part = location.pathname.split("/")[3];
  return part === "files" || part === "diff" || part === "state" || part === "raw" || part === "subagents" ? part : "transcript";
}

function Actions({ entry, shown, reload }: { entry: TimelineEntry; shown: Shown; reload: () => void }) {
  const c = entry.checkpoint!;
  const newest = shown.timeline.entries.find((e) => !e.gone && !e.quiet)?.checkpoint;
  const run = async (what: () => Promise<unknown>, done: string) => {
    try {
      await what();
      say({ text: done });
      reload();
    } catch (err) {
      const p = api.problemOf(err);
      say({ text: `${p.title}: ${p.detail}`, bad: true });
    }
  };
  return (
    <div class="point-actions">
      <button type="button" class="primary" onClick={() => setQuery({ rewind: c.id }, false)}>
        Rewind to here…
      </button>
      <a class="button" href={to.conversation(shown.info.id, "diff", { at: c.id })}>
        Diff
      </a>
      {newest && newest.id !== c.id && (
        <a class="button" href={to.compare({ c: shown.info.id, from: c.id, to: newest.id })}>
          Compare
        </a>
      )}
      {c.pins.length > 0 ? (
        <button type="button" onClick={() => run(() => Promise.all(c.pins.map((name) => api.checkpoints.unpin({ name, workspace: c.workspace }))), "Unpinned; the checkpoint stays.")}>
          Unpin
        </button>
      ) : (
        <form
          class="pin-form"
          onSubmit={(ev) => {
            ev.preventDefault();
            const field = ev.currentTarget.elements.namedItem("name") as HTMLInputElement;
            const name = field.value.trim();
            if (name) void run(() => api.checkpoints.pin({ name, ref: c.id }), `Pinned as ${name} in ${baseName(c.workspace)}.`);
          }}
        >
          <input id="pin-name" name="name" placeholder="pin as…" aria-label="Name of the pin" size={9} autocomplete="off" />
        </form>
      )}
    </div>
  );
}
