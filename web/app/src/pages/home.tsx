import type { Agent } from "@gen/stet/v1/cloudagent_service_pb";
import type { Unreadable } from "@gen/stet/v1/common_pb";
import type { OverviewRow } from "@gen/stet/v1/page_service_pb";
import { useMemo, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useListKeys } from "../focus.ts";
import { command } from "../lib/command.ts";
import { bytes, count, modelName, oneLine } from "../lib/format.ts";
import { type Arrangement, type Column, type Line, grouped, isEmptyRun, matches, merged } from "../lib/home.ts";
import { to } from "../lib/route.ts";
import { useEvery, useLoad } from "../load.ts";
import { query, setQuery } from "../nav.ts";
import { Command, Copy, Empty, Lines, Time, Trouble, Waiting, now } from "../ui.tsx";
import { List } from "../virtual.tsx";

/** Status of a cloud agent, with the numbers of the wire format. */
const statuses = ["", "running", "idle", "error", "archived", "expired", "not yet started", "waiting"];
export const statusWord = (n: number) => statuses[n] ?? "";

interface Kept {
  rows: OverviewRow[];
  damaged: Unreadable[];
}

async function everything(signal: AbortSignal): Promise<Kept> {
  const all: Kept = { rows: [], damaged: [] };
  for (let cursor = ""; ; ) {
    const res = await api.page.overview({ page: { cursor } }, { signal });
    all.rows.push(...res.rows);
    all.damaged.push(...res.damaged);
    cursor = res.nextCursor;
    if (!cursor || all.rows.length >= 10_000) return all;
  }
}

export function HomePage() {
  document.title = "stet";
  const all = useLoad(everything, []);
  // New conversations are at the top: only that part is refreshed.
  const newest = useLoad((signal) => api.page.overview({ page: { limit: 50 } }, { signal }).then((r) => r.rows), [], true);
  const rows = useMemo(() => merged(newest.value, all.value?.rows), [newest.value, all.value]);
  const running = useLoad((signal) => api.agents.list({}, { signal }).then((r) => r.agents), [], true);
  // Sizes take longer; the list does not wait for them.
  const sizes = useLoad(async (signal) => {
    const res = await api.page.storage({}, { signal });
    return new Map(res.conversations.map((c) => [c.id, c.bytes]));
  }, []);
  const [filter, setFilter] = useState("");
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const fold = (id: string) => {
    const next = new Set(unfolded);
    if (!next.delete(id)) next.add(id);
    setUnfolded(next);
  };
  useEvery(4000, () => {
    newest.poll();
    running.poll();
  });
  useListKeys("Conversations", ".home a.row");
  const day = Math.floor(now.value / 3_600_000);
  const how = arrangement();
  const withEmpty = query.value.get("empty") === "1";
  const empty = useMemo(() => (rows ?? []).filter(isEmptyRun).length, [rows]);
  const lines = useMemo(
    () => grouped((rows ?? []).filter((r) => matches(r, filter) && (withEmpty || !isEmptyRun(r))), Date.now(), unfolded, how, sizes.value),
    [rows, filter, day, unfolded, withEmpty, how.group, how.sort, how.up, how.sort === "size" && sizes.value],
  );
  const active = (running.value ?? []).filter((a) => statusWord(a.status) === "running" || a.origin);

  if (all.problem && !rows) return <Trouble whole problem={all.problem} again={all.again} />;
  if (!rows) return <Waiting />;
  const damaged = all.value?.damaged ?? [];
  if (rows.length === 0 && active.length === 0 && damaged.length === 0) return <FirstSteps />;
  return (
    <>
      <div class="page-head">
        <h1>Conversations</h1>
        <span class="muted">{count(rows.filter((r) => !r.subagentOf && (withEmpty || !isEmptyRun(r))).length, "conversation")}</span>
        {empty > 0 && (
          <button type="button" class="quiet" aria-pressed={withEmpty} onClick={() => setQuery({ empty: withEmpty ? undefined : "1" })}>
            {withEmpty ? "hide" : "show"} {count(empty, "empty run")}
          </button>
        )}
        <label class="group-by">
          Group by{" "}
          <select value={how.group} onChange={(e) => setQuery({ group: e.currentTarget.value === "day" ? undefined : e.currentTarget.value })}>
            <option value="day">day</option>
            <option value="project">project</option>
            <option value="agent">agent</option>
            <option value="none">nothing</option>
          </select>
        </label>
        <input class="filter" type="search" placeholder="Filter by title, agent or path" aria-label="Filter conversations" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
      </div>
      {damaged.length > 0 && <Damaged entries={damaged} />}
      {active.length > 0 && <Running agents={active} />}
      {lines.length > 0 && <Columns how={how} />}
      {lines.length === 0 ? (
        <Empty title="No matches">
          <p>
            No title, agent or path contains “{filter}”. To find words in messages, <a href={to.search(filter)}>search</a>.
          </p>
        </Empty>
      ) : (
        <List
          count={lines.length}
          estimate={44}
          role="list"
          label="Conversations"
          class="conversations"
          keyOf={(i) => lines[i].key}
          render={(i) => <HomeLine line={lines[i]} size={sizes.value} unfolded={unfolded} fold={fold} />}
        />
      )}
    </>
  );
}

const columns: readonly { column: Column; name: string }[] = [
  { column: "title", name: "Conversation" },
  { column: "agent", name: "Agent" },
  { column: "model", name: "Model" },
  { column: "turns", name: "Turns" },
  { column: "changed", name: "Changed" },
  { column: "size", name: "Size" },
  { column: "when", name: "Last" },
];

/** arrangement reads from the address how the list is arranged. */
function arrangement(): Arrangement {
  const group = query.value.get("group") ?? "day";
  const [sort, way] = (query.value.get("sort") ?? "when").split("-");
  return {
    group: group === "project" || group === "agent" || group === "none" ? group : "day",
    sort: columns.find((c) => c.column === sort)?.column ?? "when",
    up: way === "up",
  };
}

/** Columns names the columns and sorts by them; a second click turns the order round. */
function Columns({ how }: { how: Arrangement }) {
  const sort = (column: Column) => {
    const words = column === "title" || column === "agent" || column === "model";
    const up = how.sort === column ? !how.up : words;
    setQuery({ sort: column === "when" && !up ? undefined : `${column}${up ? "-up" : ""}` });
  };
  return (
    <div class="row-head" role="group" aria-label="Sort by">
      {columns.map(({ column, name }) => (
        <button type="button" key={column} class={`quiet ${column}`} aria-pressed={how.sort === column} onClick={() => sort(column)}>
          {name}
          {how.sort === column && <span aria-hidden="true"> {how.up ? "↑" : "↓"}</span>}
          {how.sort === column && <span class="visually-hidden">{how.up ? ", smallest first" : ", largest first"}</span>}
        </button>
      ))}
    </div>
  );
}

/** Damaged is one line about what cannot be read, and what to do about it. */
function Damaged({ entries }: { entries: Unreadable[] }) {
  const named = entries.slice(0, 3);
  return (
    <p class="damaged" role="alert">
      <strong>{count(entries.length, "conversation")} cannot be read:</strong>{" "}
      {named.map((e, i) => (
        <>
          {i > 0 && ", "}
          <code title={e.detail}>{e.id}</code>
        </>
      ))}
      {entries.length > named.length && ` and ${entries.length - named.length} more`}. <Command text={command({ store: api.storeDir.value }, "fsck")} /> says what is damaged; <Command text={command({ store: api.storeDir.value }, "fsck", "--quarantine")} /> sets it aside.
    </p>
  );
}

function HomeLine({ line, size, unfolded, fold }: { line: Line<OverviewRow>; size?: Map<string, bigint>; unfolded: ReadonlySet<string>; fold: (id: string) => void }) {
  if (line.kind === "day") return <h2 class="day">{line.name}</h2>;
  if (line.kind === "place") {
    return (
      <h3 class="place" title={line.path}>
        {line.name} <span class="path">{line.path}</span>
      </h3>
    );
  }
  if (line.kind === "fold") {
    const open = unfolded.has(line.of);
    return (
      <button type="button" class="quiet fold-subagents" aria-expanded={open} onClick={() => fold(line.of)}>
        {open ? "▾" : "▸"} {count(line.count, "subagent")}
      </button>
    );
  }
  const r = line.row;
  const taken = size?.get(r.id);
  return (
    <a class={line.depth > 0 ? "row subagent" : "row"} href={to.conversation(r.id)}>
      <span class="title">
        {oneLine(r.title) || <span class="muted">{line.depth > 0 ? "subagent" : r.id}</span>}
        {r.parent && <span class="tag">fork</span>}
      </span>
      <span class="agent">
        {r.agent}
        {r.model && <span class="with-model"> · {modelName(r.model)}</span>}
      </span>
      <span class="model" title={r.model}>
        {modelName(r.model)}
      </span>
      <span class="turns">{count(r.turns, "turn")}</span>
      <span class="changed">
        {r.files > 0 && `${count(r.files, "file")} `}
        <Lines added={r.added} removed={r.removed} />
      </span>
      <span class="size">{taken !== undefined ? bytes(taken) : ""}</span>
      <span class="when">
        <Time ms={r.updatedMs} />
      </span>
    </a>
  );
}

function Running({ agents }: { agents: Agent[] }) {
  return (
    <section class="running-agents" aria-label="Agents">
      {agents.map((a) => {
        const runs = statusWord(a.status) === "running";
        return (
          <a key={a.id} class="agent-card" href={to.live(a.id)}>
            {runs && <span class="pulse" aria-hidden="true" />}
            <span class="title">{a.name || a.agentName || a.id}</span>
            <span class="muted">
              {statusWord(a.status)}
              {a.origin && ` · copy of the one at ${a.origin}`} · last event <Time ms={a.updatedMs} />
            </span>
            <span class="watch">{runs ? "Watch live" : "Events"}</span>
          </a>
        );
      })}
    </section>
  );
}

function FirstSteps() {
  const at = { store: api.storeDir.value };
  return (
    <Empty whole title="No conversations yet">
      <p>This page shows what your agents do and can undo it. Start in a terminal with one of these:</p>
      <dl class="steps">
        <dt>
          <Command text={command(at, "demo")} />
        </dt>
        <dd>a sample workspace with the work of a scripted agent</dd>
        <dt>
          <Command text={command(at, "run", "--", "COMMAND")} />
        </dt>
        <dd>checkpoints around any command, in any directory</dd>
        <dt>
          <Command text={command(at, "import", "--from", "cursor")} />
        </dt>
        <dd>the conversations of your editor</dd>
      </dl>
      <p class="muted">
        New conversations appear here automatically. <Copy text={location.origin} label="address" />
      </p>
    </Empty>
  );
}
