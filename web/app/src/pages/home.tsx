import type { Agent } from "@gen/stet/v1/cloudagent_service_pb";
import type { Unreadable } from "@gen/stet/v1/common_pb";
import type { OverviewRow } from "@gen/stet/v1/page_service_pb";
import { useMemo, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useListKeys } from "../focus.ts";
import { bytes, count, modelName, oneLine } from "../lib/format.ts";
import { type Line, grouped, matches, merged } from "../lib/home.ts";
import { to } from "../lib/route.ts";
import { useEvery, useLoad } from "../load.ts";
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
  const lines = useMemo(() => grouped((rows ?? []).filter((r) => matches(r, filter)), Date.now(), unfolded), [rows, filter, day, unfolded]);
  const active = (running.value ?? []).filter((a) => statusWord(a.status) === "running" || a.origin);

  if (all.problem && !rows) return <Trouble whole problem={all.problem} again={all.again} />;
  if (!rows) return <Waiting />;
  const damaged = all.value?.damaged ?? [];
  if (rows.length === 0 && active.length === 0 && damaged.length === 0) return <FirstSteps />;
  return (
    <>
      <div class="page-head">
        <h1>Conversations</h1>
        <span class="muted">{count(rows.filter((r) => !r.subagentOf).length, "conversation")}</span>
        <input class="filter" type="search" placeholder="Filter by title, agent or path" aria-label="Filter conversations" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
      </div>
      {damaged.length > 0 && <Damaged entries={damaged} />}
      {active.length > 0 && <Running agents={active} />}
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
          label="Conversations by day"
          class="conversations"
          keyOf={(i) => lines[i].key}
          render={(i) => <HomeLine line={lines[i]} size={sizes.value} unfolded={unfolded} fold={fold} />}
        />
      )}
    </>
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
      {entries.length > named.length && ` and ${entries.length - named.length} more`}. <Command text="stet fsck" /> says what is damaged; <Command text="stet fsck --quarantine" /> sets it aside.
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
  return (
    <Empty whole title="No conversations yet">
      <p>This page shows what your agents do and can undo it. Start in a terminal with one of these:</p>
      <dl class="steps">
        <dt>
          <Command text="stet demo" />
        </dt>
        <dd>a sample workspace with the work of a scripted agent</dd>
        <dt>
          <Command text="stet run -- COMMAND" />
        </dt>
        <dd>checkpoints around any command, in any directory</dd>
        <dt>
          <Command text="stet import --from cursor" />
        </dt>
        <dd>the conversations of your editor</dd>
      </dl>
      <p class="muted">
        New conversations appear here automatically. <Copy text={location.origin} label="address" />
      </p>
    </Empty>
  );
}
