import * as api from "../api.ts";
import { hex } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { useLoad } from "../load.ts";
import { query } from "../nav.ts";
import { Empty, Trouble, Waiting } from "../ui.tsx";
import type { Shown } from "./shown.ts";
import { Transcript } from "./transcript.tsx";

export default function Subagents({ shown }: { shown: Shown }) {
  const root = hex(shown.root);
  const list = useLoad((signal) => api.conversations.transcript({ id: shown.info.id, root: shown.root, turns: 1, light: true }, { signal }).then((r) => r.subagents), [shown.info.id, root], true);
  if (list.problem) return <Trouble problem={list.problem} again={list.again} />;
  if (!list.value) return <Waiting />;
  if (list.value.length === 0) {
    return (
      <Empty title="No subagents">
        <p>The agent used no subagents in this conversation.</p>
      </Empty>
    );
  }
  const wanted = query.value.get("sub") ?? "";
  const sub = list.value.includes(wanted) ? wanted : list.value[0];
  return (
    <div class="subagents">
      <nav class="choices" aria-label="Subagents">
        {list.value.map((s) => (
          <a key={s} href={to.conversation(shown.info.id, "subagents", { at: shown.entry?.checkpoint?.id, sub: s })} aria-current={s === sub ? "true" : undefined}>
            {s}
          </a>
        ))}
      </nav>
      <Transcript id={shown.info.id} root={shown.root} subagent={sub} turn={Number(query.value.get("turn") ?? 0) || 0} live={false} />
    </div>
  );
}
