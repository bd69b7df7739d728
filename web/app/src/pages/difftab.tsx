import { to } from "../lib/route.ts";
import { query, setQuery } from "../nav.ts";
import { Empty, Time } from "../ui.tsx";
import type { Shown } from "./shown.ts";
import { DiffReview } from "./diffreview.tsx";

/** DiffTab shows what a checkpoint changed, or how it differs from the current files. */
export default function DiffTab({ shown, reload }: { shown: Shown; reload: () => void }) {
  const entry = shown.entry ?? shown.timeline.entries.find((e) => !e.gone && e.checkpoint!.kind !== "safety" && e.checkpoint!.filesChanged > 0) ?? shown.timeline.entries.find((e) => !e.gone);
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
  // Restoring makes newer checkpoints; the diff stays where it is.
  const changed = () => {
    setQuery({ at: c.id });
    reload();
  };
  return (
    <div class="diff-tab">
      <nav class="choices" aria-label="Compare with">
        {c.parent && link(undefined, `What ${entry.name} changed`, mode === "before")}
        {link("now", `${entry.name} and the files now`, mode === "now")}
        <span class="muted">
          <Time ms={c.timeMs} plain /> {entry.ask}
        </span>
      </nav>
      <DiffReview from={mode === "now" ? c.id : c.parent} to={mode === "now" ? "@" : c.id} workspace={c.workspace} name={mode === "now" ? entry.name : nameOf(shown, c.parent)} conversation={shown.info.id} reload={changed} />
    </div>
  );
}

/** nameOf names a checkpoint of the timeline, or "the version before". */
function nameOf(shown: Shown, id: string): string {
  return shown.timeline.entries.find((e) => e.checkpoint?.id === id)?.name ?? "the version before";
}
