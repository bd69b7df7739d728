import { BackgroundComposerSource } from "@gen/aiserver/v1/cloud_agent_pb";
import type { Agent } from "@gen/stet/v1/cloudagent_service_pb";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { useKeys } from "../keys.ts";
import { count, grouped } from "../lib/format.ts";
import { type Item, type Log, emptyLog, fold, pause } from "../lib/live.ts";
import { to } from "../lib/route.ts";
import { Copy, Empty, Lines, Trouble, Waiting } from "../ui.tsx";
import { List, type ListHandle } from "../virtual.tsx";
import { DiffText } from "./transcript.tsx";

type Link = { state: "connecting" | "open" | "lost" | "ended"; attempt: number; problem?: api.Problem };

/** LivePage follows an agent. After a lost connection it resumes at the offset of the
 * last event, and says so. */
export default function LivePage({ id }: { id: string }) {
  document.title = `live · ${id} · stet`;
  const agent = useAgent(id);
  const [log, setLog] = useState<Log>(emptyLog);
  const [link, setLink] = useState<Link>({ state: "connecting", attempt: 0 });
  const [following, setFollowing] = useState(true);
  const latest = useRef(log);
  const list = useRef<ListHandle>(null);

  useEffect(() => {
    const abort = new AbortController();
    void follow(id, abort.signal, {
      offset: () => latest.current.offset,
      event: (e) => {
        latest.current = fold(latest.current, e);
        draw();
      },
      link: setLink,
    });
    // Many events may arrive at once; the page renders once for all of them.
    let drawing = 0;
    const draw = () => {
      drawing ||= window.setTimeout(() => {
        drawing = 0;
        setLog(latest.current);
      }, 30);
    };
    return () => {
      abort.abort();
      clearTimeout(drawing);
    };
  }, [id]);

  useKeys("Live", [{ keys: "f", about: "Follow new events, or stop", run: () => setFollowing((f) => !f) }]);
  useEffect(() => {
    if (following) list.current?.end();
  }, [following]);

  if (agent.problem && !agent.value && log.items.length === 0) return <Trouble whole problem={agent.problem} again={() => location.reload()} />;
  const name = agent.value?.name || agent.value?.agentName || id;
  return (
    <>
      <div class="page-head live-head">
        <h1>{name}</h1>
        <span class={`tag status ${log.status}`}>{log.status || "…"}</span>
        <span class={`link ${link.state}`} role="status">
          {linkText(link, log)}
        </span>
        <span class="spring" />
        {log.offset && (
          <span class="muted">
            offset <code title={log.offset}>{grouped(log.seq)}</code> <Copy text={log.offset} label="offset" />
          </span>
        )}
        {agent.value && <span class="muted">{about(agent.value)}</span>}
        {agent.value?.conversation && !agent.value.origin && <a href={to.conversation(agent.value.conversation)}>Conversation</a>}
        <label>
          <input type="checkbox" checked={following} onChange={() => setFollowing(!following)} /> follow
        </label>
      </div>
      {agent.value?.errorMessage && (
        <p class="event-note error" role="alert">
          {agent.value.errorMessage}
          {agent.value.errorCode && <> ({agent.value.errorCode})</>}
        </p>
      )}
      {log.items.length === 0 ? (
        link.state === "open" ? (
          <Empty title="No events yet">
            <p>Events appear here as the agent works.</p>
          </Empty>
        ) : (
          <Waiting what="Connecting" />
        )
      ) : (
        <List
          count={log.items.length}
          estimate={60}
          role="feed"
          label="Events"
          class="events"
          handle={list}
          stick={following}
          keyOf={(i) => log.items[i].key}
          render={(i) => <EventView item={log.items[i]} />}
        />
      )}
    </>
  );
}

/** useAgent watches what is known about an agent: its name, its status and what its state
 * says. A lost connection is opened again. */
function useAgent(id: string): { value?: Agent; problem?: api.Problem } {
  const [known, setKnown] = useState<{ value?: Agent; problem?: api.Problem }>({});
  useEffect(() => {
    const abort = new AbortController();
    void (async () => {
      for (let attempt = 1; !abort.signal.aborted; attempt++) {
        try {
          for await (const { agent } of api.agents.watch({ id }, { signal: abort.signal })) {
            attempt = 1;
            setKnown({ value: agent });
          }
        } catch (err) {
          if (abort.signal.aborted) return;
          const problem = api.problemOf(err);
          setKnown((k) => ({ ...k, problem }));
          if (["NotFound", "Unauthenticated", "PermissionDenied", "InvalidArgument", "DataLoss"].includes(problem.code)) return;
        }
        await new Promise((done) => setTimeout(done, pause(attempt)));
      }
    })();
    return () => abort.abort();
  }, [id]);
  return known;
}

/** about says where an agent was started, when, and what it works on. */
function about(agent: Agent): string {
  const source = BackgroundComposerSource[agent.source] ?? "";
  return [
    agent.agentName,
    agent.startedMs > 0n ? `started ${new Date(Number(agent.startedMs)).toLocaleString()}` : "",
    agent.source ? `from ${source.toLowerCase().replaceAll("_", " ")}` : "",
    agent.branch,
    agent.origin ? `copy of the one at ${agent.origin}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function linkText(link: Link, log: Log): string {
  switch (link.state) {
    case "open":
      return `connected · ${count(log.events, "event")}`;
    case "lost":
      return `connection lost; resuming after event ${log.seq}, attempt ${link.attempt}`;
    case "ended":
      return link.problem ? link.problem.title : "the agent has ended";
  }
  return "connecting";
}

interface Sink {
  offset: () => string;
  event: (e: Parameters<typeof fold>[1]) => void;
  link: (l: Link) => void;
}

async function follow(id: string, signal: AbortSignal, sink: Sink): Promise<void> {
  for (let attempt = 1; !signal.aborted; ) {
    try {
      for await (const e of api.page.follow({ id, offsetKey: sink.offset() }, { signal })) {
        attempt = 1;
        sink.link({ state: "open", attempt: 0 });
        sink.event(e);
      }
    } catch (err) {
      if (signal.aborted) return;
      const problem = api.problemOf(err);
      if (["NotFound", "Unauthenticated", "PermissionDenied", "InvalidArgument", "DataLoss"].includes(problem.code)) {
        sink.link({ state: "ended", attempt, problem });
        return;
      }
    }
    if (signal.aborted) return;
    sink.link({ state: "lost", attempt });
    await new Promise((done) => setTimeout(done, pause(attempt)));
    attempt++;
  }
}

function EventView({ item }: { item: Item }) {
  switch (item.kind) {
    case "resumed":
    case "restarted":
      return <p class={`event-note ${item.kind}`}>{item.text}</p>;
    case "status":
      return <p class="event-note">The agent is {item.status}.</p>;
    case "turn":
      return <hr class="turn-end" aria-label="End of the turn" />;
    case "user":
      return (
        <div class="message user">
          <div class="message-head">
            <span class="who">you</span>
          </div>
          <div class="plain">{item.text}</div>
        </div>
      );
    case "thinking":
      return <div class="event-thinking plain">{item.text}</div>;
    case "error":
      return <p class="broken">{item.text}</p>;
    case "tool":
      return (
        <details class="fold tool">
          <summary>
            {item.status === "running" && <span class="pulse" aria-hidden="true" />} <b>{item.tool}</b> <code>{item.path}</code> <Lines added={item.added} removed={item.removed} />
            {item.status !== "success" && <span class="tag">{item.status}</span>}
          </summary>
          {item.diff && <DiffText diff={item.diff} />}
          {item.text && <pre tabIndex={0}>{item.text}</pre>}
        </details>
      );
  }
  return (
    <div class="message assistant">
      <div class="plain">{item.text}</div>
    </div>
  );
}
