import type { TranscriptMessage, TranscriptTurn } from "@gen/stet/v1/conversation_service_pb";
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useKeys } from "../keys.ts";
import { parseUnified } from "../lib/diff.ts";
import { hex, oneLine, spentWords } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { byTurn, pageTurns, pagesFor } from "../lib/turns.ts";
import { Copy, Empty, Html, Lines, Time, Trouble, Waiting } from "../ui.tsx";
import { List, type ListHandle } from "../virtual.tsx";

interface Props {
  id: string;
  root: Uint8Array;
  subagent?: string;
  /** The turn to show first, from 1; 0 for the end. */
  turn: number;
  /** Whether the view follows new turns. */
  live: boolean;
  /** Who wrote the prompts, "you" by default. */
  asker?: string;
}

/** Unfolded parts stay unfolded while their turn is out of view. */
const unfolded = signal<ReadonlySet<string>>(new Set());

interface Pages {
  key: string;
  total: number | undefined;
  turns: Map<number, TranscriptMessage[]>;
  /** What is known about turns, by number from 1. */
  known: Map<number, TranscriptTurn>;
  asked: Set<number>;
  problem: api.Problem | undefined;
}

const fresh = (key: string): Pages => ({ key, total: undefined, turns: new Map(), known: new Map(), asked: new Set(), problem: undefined });

/** Transcript shows messages and tool calls. Turns are fetched when they become
 * visible. */
export function Transcript({ id, root, subagent = "", turn, live, asker = subagent ? "task" : "you" }: Props) {
  const key = `${id} ${subagent}`;
  const pages = useRef<Pages>(fresh(key));
  if (pages.current.key !== key) pages.current = fresh(key);
  const [, redraw] = useState(0);
  const list = useRef<ListHandle>(null);
  const rootKey = hex(root);
  const shownRoot = useRef(rootKey);

  const fetchPage = async (p: number) => {
    const into = pages.current;
    if (into.asked.has(p)) return;
    into.asked.add(p);
    try {
      const res = await api.conversations.transcript({ id, root, subagent, fromTurn: p * pageTurns, turns: pageTurns, light: true, html: true });
      if (into !== pages.current) return;
      into.total = res.totalTurns;
      for (const [n, messages] of byTurn(res.messages, p * pageTurns)) into.turns.set(n, messages);
      for (const t of res.turns) into.known.set(t.turn, t);
      into.problem = undefined;
    } catch (err) {
      into.asked.delete(p);
      into.problem = api.problemOf(err);
    }
    redraw((n) => n + 1);
  };

  // A new state has the old turns and more, or fewer after a rewind; the page keeps
  // its content until the answer arrives.
  useEffect(() => {
    if (shownRoot.current !== rootKey) {
      shownRoot.current = rootKey;
      const old = pages.current;
      pages.current = { ...fresh(key), total: old.total, turns: new Map(old.turns), known: new Map(old.known) };
    }
    const first = turn > 0 ? Math.floor((turn - 1) / pageTurns) : 0;
    void fetchPage(first);
  }, [key, rootKey]);

  const total = pages.current.total;
  useEffect(() => {
    if (total === undefined) return;
    if (turn > 0) list.current?.show(turn - 1);
    else if (live) list.current?.end();
  }, [key, turn, total === undefined]);

  const keys = [...pages.current.turns.values()].flat().filter((m) => m.tool || m.kind === "thinking");
  useKeys(
    "Transcript",
    [
      {
        keys: "x",
        about: "Unfold or fold all",
        run: () => (unfolded.value = unfolded.value.size > 0 ? new Set() : new Set(keys.map((m) => m.id))),
      },
      { keys: "G", about: "Go to the end", run: () => list.current?.end() },
      { keys: "g g", about: "Go to the beginning", run: () => list.current?.show(0) },
    ],
  );

  if (pages.current.problem && total === undefined) return <Trouble problem={pages.current.problem} again={() => fetchPage(0)} />;
  if (total === undefined) return <Waiting />;
  if (total === 0) {
    return (
      <Empty title="No messages yet">
        <p>The first turn will appear here.</p>
      </Empty>
    );
  }
  return (
    <List
      count={total}
      estimate={260}
      role="feed"
      label="Transcript"
      class="transcript"
      handle={list}
      stick={live && turn === 0}
      onSpan={(from, to) => pagesFor(from, to).forEach((p) => void fetchPage(p))}
      render={(i) => <Turn number={i + 1} messages={pages.current.turns.get(i)} known={pages.current.known.get(i + 1)} wanted={turn === i + 1} asker={asker} id={id} subagent={subagent} />}
    />
  );
}

interface TurnProps {
  number: number;
  messages: TranscriptMessage[] | undefined;
  known: TranscriptTurn | undefined;
  wanted: boolean;
  asker: string;
  /** The conversation, and the subagent in it. Other pages show transcripts, too. */
  id: string;
  subagent: string;
}

function Turn({ number, messages, known, wanted, asker, id, subagent }: TurnProps) {
  const spent = spentWords(known?.spent);
  if (known?.interrupted) spent.push("interrupted");
  return (
    <div class={wanted ? "turn wanted" : "turn"} id={`turn-${number}`}>
      <div class="turn-number">
        <a href={subagent ? to.conversation(id, "subagents", { sub: subagent, turn: number }) : to.conversation(id, "transcript", { turn: number })} aria-label={`Link to turn ${number}`}>
          {number}
        </a>
      </div>
      <div class="turn-body">
        {spent.length > 0 && <p class="turn-spent muted">{spent.join(" · ")}</p>}
        {messages ? messages.map((m, i) => <Message key={m.id || i} m={m} asker={asker} id={id} />) : <p class="placeholder" aria-hidden="true" />}
      </div>
    </div>
  );
}

function Message({ m, asker, id }: { m: TranscriptMessage; asker: string; id: string }) {
  if (m.kind === "thinking") {
    return (
      <Fold id={m.id} class="thinking" summary={<span class="muted">Thinking · {oneLine(m.text, 80)}</span>}>
        <div class="plain">{m.text}</div>
      </Fold>
    );
  }
  if (m.tool) return <ToolCall m={m} id={id} />;
  if (m.kind === "error") return <p class="broken">{m.text}</p>;
  return (
    <div class={`message ${m.role}`}>
      <div class="message-head">
        <span class="who">{m.kind === "summary" ? "summary" : m.role === "user" ? asker : m.role === "system" ? "automatic" : m.role}</span>
        {m.timeMs > 0n && <Time ms={m.timeMs} />}
        <Copy text={m.text} label="text" />
      </div>
      {m.html ? <Html class="prose" html={m.html} /> : <div class="plain">{m.text}</div>}
    </div>
  );
}

function Fold({ id, class: c, summary, children }: { id: string; class: string; summary: preact.ComponentChildren; children: preact.ComponentChildren }) {
  const open = unfolded.value.has(id);
  return (
    <details
      class={`fold ${c}`}
      open={open}
      onToggle={(e) => {
        const now = e.currentTarget.open;
        if (now === unfolded.value.has(id)) return;
        const next = new Set(unfolded.value);
        if (now) next.add(id);
        else next.delete(id);
        unfolded.value = next;
      }}
    >
      <summary>{summary}</summary>
      {open && children}
    </details>
  );
}

function ToolCall({ m, id }: { m: TranscriptMessage; id: string }) {
  const t = m.tool!;
  const bad = t.status === "error" || t.status === "timeout" || t.status === "rejected";
  return (
    <Fold
      id={m.id}
      class="tool"
      summary={
        <>
          <b>{t.name}</b> <code>{oneLine(t.path || m.text || argument(t.inputJson), 90)}</code> <Lines added={t.added} removed={t.removed} />
          {t.status && t.status !== "success" && <span class={bad ? "tag bad" : "tag"}>{t.status}</span>}
        </>
      }
    >
      {t.inputJson && t.inputJson !== "{}" && <Part title="Input" text={pretty(t.inputJson)} />}
      {t.diff && <DiffText diff={t.diff} />}
      {t.output && <Part title="Output" text={t.output} />}
      {t.subagent && (
        <p>
          <a href={to.conversation(id, "subagents", { sub: t.subagent })}>What the subagent did</a>
        </p>
      )}
      {t.truncated && <p class="muted">Large output is omitted here; see Raw or stet export for all of it.</p>}
    </Fold>
  );
}

function Part({ title, text }: { title: string; text: string }) {
  return (
    <section class="part">
      <div class="part-head">
        {title} <Copy text={text} label={title.toLowerCase()} />
      </div>
      <pre tabIndex={0}>{text}</pre>
    </section>
  );
}

/** DiffText shows a diff that a tool reported. */
export function DiffText({ diff }: { diff: string }) {
  return (
    <pre class="difftext" tabIndex={0}>
      {parseUnified(diff).map((l, i) => (
        <span key={i} class={l.op === "+" ? "add" : l.op === "-" ? "del" : l.op === " " ? "" : "meta"}>
          {l.text + "\n"}
        </span>
      ))}
    </pre>
  );
}

/** argument is the first descriptive value of a call's input. */
function argument(json: string): string {
  try {
    const input = JSON.parse(json) as Record<string, unknown>;
    for (const name of ["command", "path", "query", "pattern", "url", "description"]) {
      const v = input[name];
      if (typeof v === "string" && v) return v;
    }
  } catch {
    return "";
  }
  return "";
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
