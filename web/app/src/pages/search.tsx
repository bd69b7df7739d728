import type { SearchHit } from "@gen/stet/v1/conversation_service_pb";
import { useEffect, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useListKeys } from "../focus.ts";
import { count, grouped, marked, oneLine } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { type Found, type Group, excerpt, groups } from "../lib/search.ts";
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
  const list = groups(hits);
  const rows = lines(list, !!cursor);
  const messages = list.reduce((n, g) => n + g.found.length, 0);
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
        {result.value && <span class="muted">{hits.length === 0 ? "nothing" : `${count(messages, "message")} in ${count(list.length, "conversation")}${cursor ? " and more" : ""}`}</span>}
        {result.value?.indexing && (
          <span class="muted" role="status">
            indexing: {grouped(result.value.indexing.done)} of {grouped(result.value.indexing.total)} conversations so far
          </span>
        )}
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
          count={rows.length}
          estimate={56}
          role="list"
          label="Messages found"
          class="results"
          render={(i) => {
            const row = rows[i];
            if (row.kind === "head") return <Head group={row.group} />;
            if (row.kind === "hit") return <Hit found={row.found} />;
            return (
              <button type="button" onClick={next}>
                More
              </button>
            );
          }}
        />
      )}
    </>
  );
}

/** focusFirst focuses the field if it is empty. */
function focusFirst(el: HTMLInputElement | null): void {
  if (el && !el.value && document.activeElement === document.body) el.focus();
}

type Line = { kind: "head"; group: Group<SearchHit> } | { kind: "hit"; found: Found<SearchHit> } | { kind: "more" };

/** lines flattens groups into the rows of the list. */
function lines(list: Group<SearchHit>[], more: boolean): Line[] {
  const out: Line[] = list.flatMap((group) => [{ kind: "head" as const, group }, ...group.found.map((found) => ({ kind: "hit" as const, found }))]);
  return more ? [...out, { kind: "more" }] : out;
}

function Head({ group }: { group: Group<SearchHit> }) {
  const title = group.inTitle ? marked(group.inTitle.snippet, group.inTitle.matches) : [{ text: oneLine(group.title, 80) || group.conversation, hit: false }];
  const time = group.inTitle?.timeMs ?? group.found[0]?.hit.timeMs ?? 0n;
  return (
    <h2 class="hit-group">
      <a class="hit" href={to.conversation(group.conversation)}>
        {title.map((p, i) => (p.hit ? <mark key={i}>{p.text}</mark> : p.text))}
      </a>
      <span class="muted">
        {group.found.length > 0 && `${count(group.found.length, "message")} · `}
        <Time ms={time} />
      </span>
    </h2>
  );
}

function Hit({ found: { hit, also } }: { found: Found<SearchHit> }) {
  return (
    <div class="found">
      <a class="hit" href={to.conversation(hit.conversation, "transcript", { turn: hit.turn })}>
        <span class="muted hit-place">
          turn {hit.turn} · {hit.tool || (hit.role === "user" ? "you" : hit.role === "system" ? "automatic" : hit.role)}
        </span>
        <span class="snippet">
          {excerpt(hit.snippet, hit.matches, hit.kind === "tool_call" || hit.kind === "shell").map((p, i) => (
            <Piece key={i} {...p} />
          ))}
        </span>
      </a>
      {also.length > 0 && (
        <p class="muted also">
          Also in{" "}
          {also.map((o, i) => (
            <>
              {i > 0 && ", "}
              <a href={to.conversation(o.conversation, "transcript", { turn: hit.turn })}>{oneLine(o.title, 60) || o.conversation}</a>
            </>
          ))}
        </p>
      )}
    </div>
  );
}

function Piece({ text, hit, code, bold }: { text: string; hit: boolean; code: boolean; bold: boolean }) {
  const marked = hit ? <mark>{text}</mark> : text;
  return code ? <code>{marked}</code> : bold ? <b>{marked}</b> : <>{marked}</>;
}
