import { to } from "../lib/route.ts";
import { query } from "../nav.ts";
import { Empty, Time } from "../ui.tsx";
import type { Shown } from "./shown.ts";
import { DiffReview } from "./diffreview.tsx";

/** DiffTab shows what a checkpoint changed, or how it differs from the current files. */
export default function DiffTab({ shown }: { shown: Shown }) {
  const entry = shown.entry ?? shown.timeline.entries.find((e) => !e.gone && e.checkpoint!.filesChanged > 0) ?? shown.timeline.entries.find((e) => !e.gone);
  const c = entry?.checkpoint;
  if (!entry || !c) {
    return (
      <Empty title="Nothing to compare">
        <p>This conversation has no checkpoints of a workspace.</p>
      </Empty>
    );
  }
  const mode = query.value.get("against") === "now" || !c.parent ? "now" : "before";
  const link = (against: string | undefined, text: string, current: boolean) => (
    <a href={to.conversation(shown.info.id, "diff", { at: shown.entry?.checkpoint?.id, against })} aria-current={current ? "true" : undefined}>
      {text}
    </a>
  );
  return (
    <div class="diff-tab">
      <nav class="choices" aria-label="Compare with">
        {c.parent && link(undefined, `What ${entry.name} changed`, mode === "before")}
        {link("now", `${entry.name} and the files now`, mode === "now")}
        <span class="muted">
          <Time ms={c.timeMs} plain /> {entry.ask}
        </span>
      </nav>
      <DiffReview from={mode === "now" ? c.id : c.parent} to={mode === "now" ? "@" : c.id} workspace={c.workspace} />
    </div>
  );
}
