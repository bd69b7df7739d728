import type { TimelineEntry } from "@gen/stet/v1/page_service_pb";
import { lazy } from "../lazy.tsx";
import { useEffect, useMemo, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useKeys } from "../keys.ts";
import { count, hex, oneLine, spentWords } from "../lib/format.ts";
import { type Tab, tabs, to } from "../lib/route.ts";
import { isGap, target } from "../lib/timeline.ts";
import { useEvery, useLoad } from "../load.ts";
import { go, query, setQuery } from "../nav.ts";
import { Copy, Empty, Missing, Time, Trouble, Waiting } from "../ui.tsx";
import { Actions } from "./actions.tsx";
import { Rail } from "./rail.tsx";
import { statusWord } from "./home.tsx";
import type { Shown } from "./shown.ts";
import { Transcript } from "./transcript.tsx";

const Files = lazy(() => import("./files.tsx"));
const DiffTab = lazy(() => import("./difftab.tsx"));
const Raw = lazy(() => import("./raw.tsx"));
const Subagents = lazy(() => import("./subagents.tsx"));
const Inspector = lazy(() => import("./inspector.tsx"));
const RewindSheet = lazy(() => import("./rewind.tsx"));

const tabNames: Record<Tab, string> = { transcript: "Transcript", files: "Files", diff: "Diff", subagents: "Subagents", state: "State", raw: "Raw" };

/** useTimeline fetches a timeline: its checkpoints, and all of its rows. */
function useTimeline(id: string) {
  const all = useLoad((signal) => api.page.timeline({ conversation: id }, { signal }), [id], true);
  const checkpoints = useMemo(() => all.value && { ...all.value, entries: all.value.entries.filter((e) => !isGap(e)) }, [all.value]);
  return [{ ...all, value: checkpoints }, all.value?.entries ?? []] as const;
}

export function ConversationPage({ id, tab }: { id: string; tab: Tab }) {
  const info = useLoad((signal) => api.conversations.get({ id }, { signal }).then((r) => r.conversation!), [id]);
  const rootKey = info.value ? hex(info.value.root) + info.value.head : "";
  const [timeline, rows] = useTimeline(id);
  const live = useLoad((signal) => api.agents.list({}, { signal }).then((r) => r.agents.find((a) => a.conversation === id && statusWord(a.status) === "running")), [id], true);
  useEvery(3000, info.poll);
  useEffect(() => {
    if (rootKey) timeline.again();
  }, [rootKey]);
  const at = query.value.get("at") ?? "";
  const rewind = query.value.get("rewind") ?? "";
  const entry = useMemo(() => timeline.value?.entries.find((e) => e.checkpoint?.id === at), [timeline.value, at]);

  useKeys(
    "Conversation",
    [
      ...tabs.map((t, i) => ({ keys: String(i + 1), about: tabNames[t], run: () => go(to.conversation(id, t, { at: at || undefined })) })),
      {
        keys: "r",
        about: "Rewind",
        run: () => {
          const back = target(timeline.value?.entries ?? [], entry);
          if (back) setQuery({ rewind: back.checkpoint!.id }, false);
        },
      },
      { keys: "u", about: "Back to the newest", run: () => setQuery({ at: undefined }) },
    ],
  );

  if (info.problem?.code === "NotFound" && !info.value) {
    document.title = "Not found · stet";
    return <Missing what="conversation" help="It may have been deleted, or it is in another store. The address may also be mistyped." />;
  }
  if (info.problem && !info.value) return <Trouble whole problem={info.problem} again={info.again} />;
  if (!info.value || !timeline.value) return timeline.problem ? <Trouble whole problem={timeline.problem} again={timeline.again} /> : <Waiting />;
  document.title = `${oneLine(info.value.title, 60) || id} · stet`;
  const shown: Shown = { info: info.value, timeline: timeline.value, rows, entry, root: entry?.checkpoint?.root.length ? entry.checkpoint.root : info.value.root };
  const reload = () => {
    info.again();
    timeline.again();
  };
  return (
    <>
      <Head shown={shown} tab={tab} live={live.value?.id} reload={reload} />
      <div class="columns">
        <Rail shown={shown} reload={reload} />
        <section class="content" aria-label={tabNames[tab]}>
          {entry && tab !== "diff" && <Past entry={entry} />}
          <Content shown={shown} tab={tab} reload={reload} />
        </section>
      </div>
      {rewind && <RewindSheet shown={shown} reference={rewind} onClose={() => setQuery({ rewind: undefined })} reload={reload} />}
    </>
  );
}

function Head({ shown, tab, live, reload }: { shown: Shown; tab: Tab; live: string | undefined; reload: () => void }) {
  const { info, entry, timeline } = shown;
  const at = entry?.checkpoint?.id;
  const [railOpen, setRailOpen] = useState(false);
  useEffect(() => {
    document.body.classList.toggle("rail-open", railOpen);
    return () => document.body.classList.remove("rail-open");
  }, [railOpen]);
  return (
    <div class="conversation-head">
      <div class="head-line">
        <h1>{oneLine(info.title) || info.id}</h1>
        <Actions shown={shown} reload={reload} />
      </div>
      <p class="facts">
        {info.agent && <span>{info.agent}</span>}
        {info.workspace && (
          <span class="path" title={info.workspace}>
            {info.workspace}
          </span>
        )}
        <span>{count(info.turns, "turn")}</span>
        {spentWords(timeline.spent).map((word) => (
          <span key={word} class="spent">
            {word}
          </span>
        ))}
        <span>
          changed <Time ms={info.updatedMs} />
        </span>
        {info.labels.subagent && info.labels.parent && (
          <span>
            subagent of <a href={to.conversation(info.labels.parent)}>{info.labels.parent}</a>
          </span>
        )}
        {info.labels.try && (
          <span>
            attempt {info.labels["try.number"]} of <a href={to.try(info.labels.try)}>try {info.labels.try}</a>
          </span>
        )}
        {info.parent && (
          <span>
            forked from <a href={to.conversation(info.parent)}>{info.parent}</a>
          </span>
        )}
        <span>
          <code>{info.id}</code> <Copy text={info.id} label="id" />
        </span>
        {live && (
          <a class="live-link" href={to.live(live)}>
            <span class="pulse" aria-hidden="true" /> Watch live
          </a>
        )}
      </p>
      <nav class="tabs" aria-label="Views of the conversation">
        <button type="button" class="rail-toggle" aria-expanded={railOpen} onClick={() => setRailOpen(!railOpen)}>
          Timeline
        </button>
        {tabs.map((t) => (
          <a key={t} href={to.conversation(info.id, t, { at })} aria-current={t === tab ? "page" : undefined}>
            {tabNames[t]}
          </a>
        ))}
      </nav>
    </div>
  );
}

/** Past reports that the page shows an earlier state. */
function Past({ entry }: { entry: TimelineEntry }) {
  return (
    <p class={entry.gone ? "past gone" : "past"}>
      <span>
        Looking at <b>{entry.name}</b>, <Time ms={entry.checkpoint!.timeMs} plain />
        {entry.gone && (
          <>
            : on a branch rewound <Time ms={entry.goneMs} /> and kept
          </>
        )}
      </span>
      <button type="button" onClick={() => setQuery({ at: undefined })}>
        Back to the newest
      </button>
    </p>
  );
}

function Content({ shown, tab, reload }: { shown: Shown; tab: Tab; reload: () => void }) {
  switch (tab) {
    case "files":
      return <Files shown={shown} />;
    case "diff":
      return <DiffTab shown={shown} reload={reload} />;
    case "subagents":
      return <Subagents shown={shown} />;
    case "state":
      return shown.root.length ? <Inspector id={hex(shown.root)} kind="state" /> : <NoState />;
    case "raw":
      return <Raw shown={shown} />;
  }
  if (!shown.root.length) return <NoState />;
  return <Transcript id={shown.info.id} root={shown.root} turn={turnWanted(shown)} live={!shown.entry} asker={shown.info.labels.subagent ? "task" : "you"} />;
}

function NoState() {
  return (
    <Empty title="No messages yet">
      <p>The first turn will appear here.</p>
    </Empty>
  );
}

/** turnWanted is the turn to show first, from 1; 0 for the end. */
function turnWanted(shown: Shown): number {
  return Number(query.value.get("turn") ?? 0) || shown.entry?.checkpoint?.turn || 0;
}
