import type { SearchHit } from "@gen/stet/v1/conversation_service_pb";
import { useEffect, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useListKeys } from "../focus.ts";
import { count, marked, oneLine } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { useLoad } from "../load.ts";
import { query, setQuery } from "../nav.ts";
import { Empty, Time, Trouble, Waiting, say } from "../ui.tsx";
import { List } from "../virtual.tsx";

/** SearchPage finds messages by words. */
export default function SearchPage() {
  const q = query.value.get("q") ?? "";
  const within = query.value.get("in") ?? "";
  document.title = q ? `${q} · search · stet` : "Search · stet";
  const [text, setText] = useState(q);
  const [more, setMore] = useState<{ key: string; hits: SearchHit[]; cursor: string }>({ key: "", hits: [], cursor: "" });
  useEffect(() => setText(q), [q]);
  // The search follows the input with a short delay.
  useEffect(() => {
    if (text === q) return;
    const timer = setTimeout(() => setQuery({ q: text || undefined }), 250);
    return () => clearTimeout(timer);
  }, [text]);
  const result = useLoad(async (signal) => (q.trim() ? await api.conversations.search({ query: q, conversation: within, page: { limit: 50 } }, { signal }) : undefined), [q, within], true);
  useListKeys("Results", ".results a.hit");
  const key = `${q} ${within}`;
  const added = more.key === key ? more.hits : [];
  const hits = [...(result.value?.hits ?? []), ...added];
  const cursor = more.key === key ? more.cursor : (result.value?.nextCursor ?? "");
  const next = async () => {
    try {
      const res = await api.conversations.search({ query: q, conversation: within, page: { limit: 50, cursor } });
      setMore({ key, hits: [...added, ...res.hits], cursor: res.nextCursor });
    } catch (err) {
      say({ text: api.problemOf(err).detail, bad: true });
    }
  };
  return (
    <>
      <div class="page-head">
        <h1>Search</h1>
        <input class="filter" type="search" aria-label="Words to find" placeholder="Words in messages and tool calls" value={text} onInput={(e) => setText(e.currentTarget.value)} ref={focusFirst} />
        {result.value && <span class="muted">{hits.length === 0 ? "nothing" : count(hits.length, "message") + (cursor ? " and more" : "")}</span>}
        {within && (
          <button type="button" onClick={() => setQuery({ in: undefined })}>
            in one conversation ✕
          </button>
        )}
      </div>
      {result.problem ? (
        <Trouble problem={result.problem} again={result.again} />
      ) : !q.trim() ? (
        <Empty title="Search all conversations">
          <p>Every word must occur; “quotes” find phrases. Titles, messages, tool calls and their output are searched.</p>
        </Empty>
      ) : !result.value ? (
        <Waiting what="Searching" />
      ) : hits.length === 0 ? (
        <Empty title="No matches">
          <p>No message contains all of these words. Try fewer words, or the beginning of one.</p>
        </Empty>
      ) : (
        <List
          count={hits.length + (cursor ? 1 : 0)}
          estimate={84}
          role="list"
          label="Messages found"
          class="results"
          render={(i) =>
            i < hits.length ? (
              <Hit hit={hits[i]} />
            ) : (
              <button type="button" onClick={next}>
                More
              </button>
            )
          }
        />
      )}
    </>
  );
}

/** focusFirst focuses the field if it is empty. */
function focusFirst(el: HTMLInputElement | null): void {
  if (el && !el.value && document.activeElement === document.body) el.focus();
}

function Hit({ hit }: { hit: SearchHit }) {
  return (
    <a class="hit" href={to.conversation(hit.conversation, "transcript", { turn: hit.turn || undefined })}>
      <span class="hit-head">
        <b>{oneLine(hit.title, 80) || hit.conversation}</b>
        <span class="muted">
          {hit.turn > 0 ? `${hit.role === "user" ? "you" : hit.role === "system" ? "automatic" : hit.role} · turn ${hit.turn}` : "title"} · <Time ms={hit.timeMs} />
        </span>
      </span>
      <span class="snippet">{marked(hit.snippet, hit.matches).map((p, i) => (p.hit ? <mark key={i}>{p.text}</mark> : p.text))}</span>
    </a>
  );
}
