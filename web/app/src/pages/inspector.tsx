import type { GraphResponse } from "@gen/stet/v1/page_service_pb";
import { useMemo, useState } from "preact/hooks";
import * as api from "../api.ts";
import { bytes, count, hex, oneLine, short, unhex } from "../lib/format.ts";
import { box, curve, layout } from "../lib/graph.ts";
import { to } from "../lib/route.ts";
import { useLoad } from "../load.ts";
import { Copy, Empty, Trouble, Waiting } from "../ui.tsx";

/** Inspector shows a blob: the graph of its references, its fields and its hash. */
export default function Inspector({ id, kind, page }: { id: string; kind: string; page?: boolean }) {
  const raw = useMemo(() => unhex(id), [id]);
  const graph = useLoad(async (signal) => (raw?.length === 32 ? await api.page.graph({ id: raw, kind }, { signal }) : undefined), [id, kind], true);
  const blob = useLoad(async (signal) => (raw?.length === 32 ? await api.conversations.inspect({ id: raw, kind }, { signal }) : undefined), [id, kind], true);
  if (raw?.length !== 32) {
    return (
      <Empty whole={page} title="Not a blob ID">
        <p>A blob ID has 64 hexadecimal digits.</p>
      </Empty>
    );
  }
  if (blob.problem) return <Trouble whole={page} problem={blob.problem} again={blob.again} />;
  if (!blob.value) return <Waiting />;
  const b = blob.value;
  const refs = b.fields.filter((f) => f.ref.length > 0);
  const fields = b.fields.filter((f) => f.ref.length === 0);
  const Title = page ? "h1" : "h2";
  return (
    <div class="inspector" tabIndex={0} role="region" aria-label="Inspector">
      <div class="inspector-head">
        <Title>{b.kind}</Title>
        <code title={id}>{short(id, 16)}…</code>
        <Copy text={id} label="id" />
        <span>{bytes(b.size)}</span>
        <span>{count(refs.length, "reference")}</span>
        <HashCheck id={id} raw={raw} ok={b.hashOk} />
      </div>
      {graph.problem && <Trouble problem={graph.problem} again={graph.again} />}
      {graph.value && graph.value.nodes.length > 1 && <Graph graph={graph.value} />}
      {fields.length > 0 && (
        <section>
          <h3>Fields</h3>
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Number</th>
                <th scope="col">Value</th>
              </tr>
            </thead>
            <tbody>
              {fields.map((f) => (
                <tr key={f.number}>
                  <th scope="row">{f.name}</th>
                  <td>{f.number}</td>
                  <td>
                    <FieldValue text={f.value} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {refs.length > 0 && (
        <section>
          <h3>References</h3>
          <ul class="refs">
            {refs.slice(0, 400).map((f, i) => (
              <li key={i}>
                <span class="muted">{f.name}</span> <a href={to.inspect(hex(f.ref), f.refKind)}>{f.refKind}</a> <code>{short(hex(f.ref), 12)}</code>
              </li>
            ))}
            {refs.length > 400 && <li class="muted">and {refs.length - 400} more</li>}
          </ul>
        </section>
      )}
      {b.text && (
        <section>
          <h3>Text</h3>
          <pre class="blob-text" tabIndex={0}>
            {b.text}
          </pre>
          {b.truncated && <p class="muted">Only the beginning is shown.</p>}
        </section>
      )}
    </div>
  );
}

function FieldValue({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  if (text.length <= 160) return <code>{text}</code>;
  return (
    <>
      <code class={open ? "whole" : ""}>{open ? text : oneLine(text, 160)}</code>{" "}
      <button type="button" class="quiet" onClick={() => setOpen(!open)}>
        {open ? "less" : "more"}
      </button>
    </>
  );
}

/** HashCheck compares a blob with its name in the browser. */
function HashCheck({ id, raw, ok }: { id: string; raw: Uint8Array; ok: boolean }) {
  const [result, setResult] = useState<string>();
  const check = async () => {
    setResult("…");
    try {
      const { data } = await api.blobs.get({ id: raw });
      const sum = hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data as BufferSource)));
      setResult(sum === id.toLowerCase() ? "the hash matches (computed in this browser)" : `the hash is ${sum}`);
    } catch (err) {
      setResult(api.problemOf(err).detail);
    }
  };
  return (
    <span class="hash">
      <span class={ok ? "tag good" : "tag bad"}>{ok ? "hash verified" : "hash differs"}</span>
      <button type="button" class="quiet" onClick={check}>
        check again here
      </button>
      <span role="status">{result}</span>
    </span>
  );
}

function Graph({ graph }: { graph: GraphResponse }) {
  const { places, width, height } = useMemo(() => layout(graph.nodes), [graph]);
  return (
    <figure class="graph">
      <div class="graph-scroll" tabIndex={0} role="region" aria-label="Graph of references">
        <svg viewBox={`-2 -2 ${width + 4} ${height + 4}`} width={width + 4} height={height + 4}>
          {graph.edges.map((e, i) => (
            <path key={i} class="edge" d={curve(places[e.from], places[e.to])}>
              <title>{e.field}</title>
            </path>
          ))}
          {graph.nodes.map((n, i) => {
            const id = hex(n.id);
            return (
              <a key={id} href={to.inspect(id, n.kind)}>
                <g transform={`translate(${places[i].x} ${places[i].y})`} class={`node ${n.kind.replace(/ /g, "-")}${n.error ? " bad" : ""}`}>
                  <rect width={box.width} height={box.height} rx="6" />
                  <text x="10" y="18" class="node-kind">
                    {n.kind}
                    {n.refs > 0 ? ` → ${n.refs}` : ""}
                  </text>
                  <text x="10" y="34" class="node-id">
                    {n.error || `${short(id, 8)} · ${bytes(n.size)}`}
                  </text>
                  <title>{n.stored > 0n ? `${bytes(n.stored)} in the store` : n.kind}</title>
                </g>
              </a>
            );
          })}
        </svg>
      </div>
      <figcaption class="muted">
        {count(graph.nodes.length, "blob")}
        {graph.truncated && ", nearest first; the rest is omitted. Choose a blob to continue from there."}
      </figcaption>
    </figure>
  );
}
