import type { FileDiff } from "@gen/stet/v1/checkpoint_service_pb";
import type { Attempt } from "@gen/stet/v1/page_service_pb";
import { useMemo } from "preact/hooks";
import * as api from "../api.ts";
import { matrix, read, result, score, took } from "../lib/attempts.ts";
import { cost, count, modelName, oneLine } from "../lib/format.ts";
import { to } from "../lib/route.ts";
import { useEvery, useLoad } from "../load.ts";
import { query, setQuery } from "../nav.ts";
import { Copy, Empty, Lines, Missing, Time, Trouble, Waiting } from "../ui.tsx";
import { Hunks } from "./hunks.tsx";
import { Transcript } from "./transcript.tsx";

/** AttemptsPage shows what several runs of an agent made of the same files, side by side. */
export default function AttemptsPage({ id }: { id: string }) {
  document.title = `Try ${id} · stet`;
  const found = useLoad((signal) => api.page.attempts({ try: id }, { signal }), [id]);
  useEvery(3000, () => found.value?.attempts.some((a) => !a.ended) && found.poll());
  const all = found.value?.attempts ?? [];
  // A branch grows while its agent works.
  const state = all.map((a) => `${a.base} ${a.last}`).join();
  const files = useLoad((signal) => Promise.all(all.map((a) => (a.base ? api.checkpoints.diff({ from: a.base, to: a.last, statOnly: true }, { signal }).then((r) => r.files) : []))), [state], true);
  if (found.problem?.code === "NotFound" && !found.value) return <Missing what="try" help="Its attempts may have been removed, or they are in another store." />;
  if (found.problem && !found.value) return <Trouble whole problem={found.problem} again={found.again} />;
  if (!found.value) return <Waiting />;
  const best = found.value.best;
  return (
    <div class="attempts-page">
      <div class="page-head">
        <h1>Try {id}</h1>
        <code>{oneLine(all[0].command, 120)}</code>
        <span class="muted">
          {count(all.length, "attempt")} · began <Time ms={all[0].beganMs} />
        </span>
        <span class="path muted">{all[0].workspace}</span>
      </div>
      <Results all={all} best={best} />
      {files.problem ? <Trouble problem={files.problem} again={files.again} /> : <Changed all={all} files={files.value} />}
      <h2 class="attempts-title">Words</h2>
      <div class="attempt-columns words" tabIndex={0} role="region" aria-label="Words of the attempts">
        {all.map((a) => (
          <Words key={a.id} attempt={a} />
        ))}
      </div>
    </div>
  );
}

function Results({ all, best }: { all: readonly Attempt[]; best: number | undefined }) {
  const row = (name: string, cell: (a: Attempt) => preact.ComponentChildren) => (
    <tr>
      <th scope="row">{name}</th>
      {all.map((a) => (
        <td key={a.id}>{cell(a)}</td>
      ))}
    </tr>
  );
  const known = (of: (a: Attempt) => string) => all.some((a) => of(a) !== "");
  const model = (a: Attempt) => modelName(a.spent?.model ?? "");
  const paid = (a: Attempt) => cost(a.spent?.costUsd);
  return (
    <div class="wide-table" tabIndex={0} role="region" aria-label="Results">
      <table class="results-table">
        <thead>
          <tr>
            <td />
            {all.map((a, i) => (
              <th key={a.id} scope="col">
                <a href={to.conversation(a.id)}>Attempt {a.number}</a> {i === best && <span class="tag good">best</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {row("Result", (a) => (
            <span class={a.ended && a.exitCode !== 0 ? "del" : ""}>{result(a)}</span>
          ))}
          {known(score) && row("Score", (a) => <b>{score(a)}</b>)}
          {row("Time", took)}
          {known(model) && row("Model", model)}
          {known(read) && row("Tokens", read)}
          {known(paid) && row("Cost", paid)}
          {row("Changes", (a) =>
            a.ended ? (
              <>
                <a href={to.conversation(a.id, "diff", { at: a.last })}>{count(a.files, "file")}</a> <Lines added={a.added} removed={a.removed} />
              </>
            ) : null,
          )}
          {row("To take it", (a) =>
            a.files > 0 && a.base ? (
              <span class="command">
                <code>stet adopt {a.id}</code> <Copy text={`stet adopt ${a.id}`} label={`the command for attempt ${a.number}`} />
              </span>
            ) : (
              <span class="muted">{a.ended && !a.base ? "no longer kept" : ""}</span>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** Changed shows which attempt changed which file, and the chosen file in each. */
function Changed({ all, files }: { all: readonly Attempt[]; files: FileDiff[][] | undefined }) {
  const rows = useMemo(() => matrix(files ?? []), [files]);
  const path = query.value.get("path") ?? "";
  if (!files) return <Waiting what="Comparing" />;
  if (rows.length === 0) {
    return (
      <Empty title="Nothing was changed">
        <p>No attempt has changed a file.</p>
      </Empty>
    );
  }
  return (
    <>
      <h2 class="attempts-title">Files</h2>
      <div class="wide-table" tabIndex={0} role="region" aria-label="Changed files">
        <table class="results-table files-table">
          <thead>
            <tr>
              <th scope="col">{count(rows.length, "file")}</th>
              {all.map((a) => (
                <th key={a.id} scope="col">
                  {a.number}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => (
              <tr key={r.path} class={r.path === path ? "chosen" : ""}>
                <th scope="row">
                  <button type="button" class="quiet path" aria-pressed={r.path === path} onClick={() => setQuery({ path: r.path === path ? undefined : r.path })}>
                    {r.path}
                  </button>
                </th>
                {r.cells.map((f, i) => (
                  <td key={all[i]?.id ?? i}>{f ? <Cell file={f} /> : <span class="muted">–</span>}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.some((r) => r.path === path) && (
        <div class="attempt-columns" tabIndex={0} role="region" aria-label={`${path} in each attempt`}>
          {all.map((a, i) => (
            <OneFile key={a.id} attempt={a} path={path} changed={files[i]?.some((f) => f.path === path) ?? false} />
          ))}
        </div>
      )}
    </>
  );
}

function Cell({ file }: { file: FileDiff }) {
  const gone = file.action.startsWith("del");
  if (file.binary) return <span>{gone ? "deleted" : "changed"}</span>;
  return (
    <>
      <Lines added={file.added} removed={file.removed} /> {gone && <span class="muted">deleted</span>}
    </>
  );
}

/** OneFile shows what an attempt changed in a file. */
function OneFile({ attempt: a, path, changed }: { attempt: Attempt; path: string; changed: boolean }) {
  const diff = useLoad(async (signal) => (changed ? (await api.checkpoints.diff({ from: a.base, to: a.last, paths: [path] }, { signal })).files[0] : undefined), [a.base, a.last, path, changed], true);
  return (
    <section aria-label={`Attempt ${a.number}: ${path}`}>
      <h3>
        Attempt {a.number} {diff.value && changed && <Lines added={diff.value.added} removed={diff.value.removed} />}
      </h3>
      {!changed && <p class="muted">Unchanged.</p>}
      {changed && diff.problem && <Trouble problem={diff.problem} again={diff.again} />}
      {changed && !diff.problem && !diff.value && <Waiting />}
      {changed && diff.value && (diff.value.hunks.length > 0 ? <Hunks hunks={diff.value.hunks} label={`Attempt ${a.number}: lines of ${path}`} /> : <p class="muted">{diff.value.binary ? "Not a text." : diff.value.truncated ? "Too large to show." : "Only the mode differs."}</p>)}
    </section>
  );
}

/** Words shows what a connected agent said, or what the command printed. */
function Words({ attempt: a }: { attempt: Attempt }) {
  const id = a.words || a.id;
  return (
    <section class="attempt-words" aria-label={`Words of attempt ${a.number}`}>
      <h3>
        <a href={to.conversation(id)}>Attempt {a.number}</a> <span class="muted">{a.words ? "the agent's conversation" : "what it printed"}</span>
      </h3>
      {a.ended && !a.words ? <Printed id={a.id} /> : a.words ? <Transcript id={id} root={new Uint8Array()} turn={0} live={false} /> : <p class="muted">It has not ended.</p>}
    </section>
  );
}

/** Printed shows the output of a command. */
function Printed({ id }: { id: string }) {
  const said = useLoad((signal) => api.conversations.transcript({ id, turns: 1, light: true }, { signal }), [id]);
  if (said.problem) return <Trouble problem={said.problem} again={said.again} />;
  if (!said.value) return <Waiting />;
  const tools = said.value.messages.flatMap((m) => (m.tool ? [m.tool] : []));
  const text = tools.map((t) => t.output).join("\n");
  if (!text && tools.some((t) => t.truncated)) return <p class="muted">It printed too much to be shown here.</p>;
  return text ? (
    <pre class="printed" tabIndex={0}>
      {text}
    </pre>
  ) : (
    <p class="muted">It printed nothing.</p>
  );
}
