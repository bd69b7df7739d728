import type { TimelineEntry } from "@gen/stet/v1/page_service_pb";
import * as api from "../api.ts";
import { clock, count, hex, oneLine } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { isGap, pair } from "../lib/timeline.ts";
import { useLoad } from "../load.ts";
import { go, query } from "../nav.ts";
import { Empty, Lines, Time, Trouble, Waiting } from "../ui.tsx";
import { DiffReview } from "./diffreview.tsx";
import { what } from "./rail.tsx";

/** ComparePage shows two checkpoints of a conversation beside each other. */
export default function ComparePage() {
  document.title = "Compare · stet";
  const q = query.value;
  const list = useLoad((signal) => api.page.overview({}, { signal }).then((r) => r.rows.filter((row) => row.checkpoints > 0)), []);
  // Two points to compare are better than one.
  const c = q.get("c") || (list.value?.find((r) => r.checkpoints > 1) ?? list.value?.[0])?.id || "";
  const timeline = useLoad(async (signal) => (c ? (await api.page.timeline({ conversation: c }, { signal })).entries.filter((e) => !isGap(e)) : []), [c]);
  if (list.problem) return <Trouble whole problem={list.problem} again={list.again} />;
  if (timeline.problem) return <Trouble whole problem={timeline.problem} again={timeline.again} />;
  if (!list.value || !timeline.value) return <Waiting />;
  if (list.value.length === 0) {
    return (
      <Empty whole title="Nothing to compare yet">
        <p>This store has no checkpoints yet. You can compare two of them here later.</p>
      </Empty>
    );
  }
  const entries = timeline.value;
  const shown = entries.filter((e) => !e.quiet);
  const { left, right } = pair(entries, q.get("from"), q.get("to"));
  const change = (part: Record<string, string>) => go(to.compare({ c, from: left?.checkpoint?.id, to: right?.checkpoint?.id ?? "@", ...part }), true);
  return (
    <>
      <div class="page-head">
        <h1>Compare</h1>
        <label>
          Conversation{" "}
          <select value={c} onChange={(e) => go(to.compare({ c: e.currentTarget.value }), true)}>
            {list.value.map((r) => (
              <option key={r.id} value={r.id}>
                {oneLine(r.title, 60) || r.id}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => right && change({ from: right.checkpoint!.id, to: left!.checkpoint!.id })} disabled={!right}>
          Swap
        </button>
      </div>
      <div class="sides">
        <Side label="From" entries={shown} value={left} choose={(id) => change({ from: id })} />
        <Side label="To" entries={shown} value={right} choose={(id) => change({ to: id })} now />
      </div>
      {left && <Turns left={left} right={right} conversation={c} />}
      {left && <DiffReview from={left.checkpoint!.id} to={right?.checkpoint?.id ?? "@"} workspace={left.checkpoint!.workspace} name={left.name} conversation={c} reload={timeline.again} />}
    </>
  );
}

function Side({ label, entries, value, choose, now }: { label: string; entries: TimelineEntry[]; value: TimelineEntry | undefined; choose: (id: string) => void; now?: boolean }) {
  const c = value?.checkpoint;
  return (
    <section class="side" aria-label={label}>
      <label>
        {label}{" "}
        <select value={c?.id ?? "@"} onChange={(e) => choose(e.currentTarget.value)}>
          {now && <option value="@">the files now</option>}
          {entries.map((e) => (
            <option key={e.checkpoint!.id} value={e.checkpoint!.id}>
              {e.name} · {clock(Number(e.checkpoint!.timeMs))} · {oneLine(what(e), 50)}
              {e.gone ? " (rewound)" : ""}
            </option>
          ))}
        </select>
      </label>
      {c ? (
        <p class="muted">
          <Time ms={c.timeMs} /> · turn {c.turn} · {count(c.filesChanged, "file")} <Lines added={c.linesAdded} removed={c.linesRemoved} /> {value?.tools && `· ${value.tools}`}
        </p>
      ) : (
        <p class="muted">The current workspace.</p>
      )}
    </section>
  );
}

/** Turns shows how the conversation differs between the two sides. */
function Turns({ left, right, conversation }: { left: TimelineEntry; right: TimelineEntry | undefined; conversation: string }) {
  const [a, b] = [left.checkpoint!, right?.checkpoint];
  if (!b || a.root.length === 0 || b.root.length === 0) return null;
  if (hex(a.root) === hex(b.root)) return <p class="turns-differ">The conversation is the same on both sides.</p>;
  const link = (e: TimelineEntry) => (
    <a href={to.conversation(conversation, "transcript", { at: e.checkpoint!.id })}>
      {e.name}, {e.checkpoint!.side === 1 ? "before" : "after"} turn {e.checkpoint!.turn}
    </a>
  );
  return (
    <p class="turns-differ">
      Conversation: {link(left)}
      {left.ask && <> “{oneLine(left.ask, 50)}”</>} and {link(right!)}
      {right!.ask && <> “{oneLine(right!.ask, 50)}”</>}
      {left.gone !== right!.gone && "; one of them is on a rewound branch"}
    </p>
  );
}
