import type { RemoteBacklog, StorageResponse } from "@gen/stet/v1/page_service_pb";
import type { CollectResponse, FsckResponse } from "@gen/stet/v1/store_service_pb";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import * as api from "../api.ts";
import { command } from "../lib/command.ts";
import { ago, bytes, count, grouped, oneLine, ratio } from "../lib/format.ts";
import { begin, stacked } from "../lib/plot.ts";
import { to } from "../lib/route.ts";
import { useLoad } from "../load.ts";
import { theme } from "../theme.ts";
import { Command, Empty, Trouble, Waiting } from "../ui.tsx";

/** StoragePage shows what takes the space. */
export default function StoragePage() {
  document.title = "Storage · stet";
  const report = useLoad((signal) => api.page.storage({}, { signal }), []);
  const measuring = report.value?.measuring;
  useEffect(() => {
    if (!measuring) return;
    const timer = setInterval(report.poll, 2000);
    return () => clearInterval(timer);
  }, [measuring]);
  if (report.problem) return <Trouble whole problem={report.problem} again={report.again} />;
  if (!report.value) return <Waiting what="Measuring" />;
  const r = report.value;
  if (r.points.length === 0) {
    return (
      <Empty whole title="The store is empty">
        <p>
          Nothing was saved yet. <Command text={command({ store: api.storeDir.value }, "demo")} /> creates an example.
        </p>
      </Empty>
    );
  }
  const [logical, content, stored] = [Number(r.logicalBytes), Number(r.contentBytes), Number(r.storedBytes)];
  return (
    <div class="storage-page" tabIndex={0} role="region" aria-label="Storage">
      <div class="page-head">
        <h1>Storage</h1>
        {r.partial && <span class="tag">measured partially: the store is large</span>}
        {r.measuring && (
          <span class="muted" role="status">
            measured {ago(Number(r.measuredMs), Date.now())}; measuring again
          </span>
        )}
        <span class="spring" />
        <button type="button" onClick={report.again}>
          Measure again
        </button>
      </div>
      {r.damaged.length > 0 && (
        <details class="broken">
          <summary>Some rows or trees cannot be read. What they refer to is not counted; stet fsck names the damage.</summary>
          <ul>
            {r.damaged.map((text, i) => (
              <li key={i}>{text}</li>
            ))}
          </ul>
        </details>
      )}
      <dl class="figures">
        <Figure name="On disk" value={bytes(r.diskBytes)} about="all files of the store" />
        <Figure name="Stored" value={bytes(stored)} about="contents, compressed" />
        <Figure name="Deduplication" value={ratio(logical, content)} about={`${bytes(logical)} of states and trees, ${bytes(content)} of unique content`} />
        {r.remote && <Figure name="Remote" value={r.remote.blobs === 0n ? "has everything" : `${count(Number(r.remote.blobs), "blob")}${r.remote.more ? " or more" : ""} waiting`} about={remoteText(r.remote)} />}
        <Figure name="Compression" value={ratio(content, stored)} about={`${bytes(content)} become ${bytes(stored)}`} />
      </dl>
      <section>
        <PlotOverTime report={r} />
      </section>
      <div class="two">
        <Kinds report={r} />
        <Biggest report={r} />
      </div>
      <div class="two">
        <Garbage />
        <Check />
      </div>
    </div>
  );
}

/** remoteText says where copies go, how much waits and why. */
function remoteText(remote: RemoteBacklog): string {
  return [remote.url, remote.blobs > 0n ? bytes(remote.bytes) : "", remote.error && `sending failed: ${oneLine(remote.error)}`].filter(Boolean).join(" · ");
}

function Figure({ name, value, about }: { name: string; value: string; about: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <b>{value}</b>
        <span class="muted">{about}</span>
      </dd>
    </div>
  );
}

const hues = ["--plot-1", "--plot-2", "--plot-3", "--plot-4", "--plot-5", "--plot-6", "--plot-7"];

/** PlotOverTime shows the time in which most happened, and all of it on request: one old
 * conversation would leave no room for the rest. */
function PlotOverTime({ report }: { report: StorageResponse }) {
  const [all, setAll] = useState(false);
  const times = stacked(report.points, 0).times;
  const from = begin(times);
  const short = from > times[0];
  return (
    <>
      <div class="plot-head">
        <h2>Bytes by kind over time</h2>
        {short && (
          <div class="segments" role="group" aria-label="Time shown">
            <button type="button" aria-pressed={!all} onClick={() => setAll(false)}>
              Since {new Date(from * 1000).toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" })}
            </button>
            <button type="button" aria-pressed={all} onClick={() => setAll(true)}>
              All time
            </button>
          </div>
        )}
      </div>
      <Plot report={report} from={all ? undefined : from} />
    </>
  );
}

function Plot({ report, from }: { report: StorageResponse; from: number | undefined }) {
  const ref = useRef<HTMLDivElement>(null);
  const dark = theme.value;
  const [system, setSystem] = useState(0);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const on = () => setSystem((n) => n + 1);
    media.addEventListener("change", on);
    return () => media.removeEventListener("change", on);
  }, []);
  useEffect(() => {
    const el = ref.current!;
    const style = getComputedStyle(el);
    const color = (name: string) => resolve(el, name);
    const { times, series } = stacked(report.points, report.kinds.length);
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") }, font: `12px ${style.fontFamily}` };
    const plot = new uPlot(
      {
        width: el.clientWidth,
        height: 240,
        cursor: { y: false },
        legend: { live: false },
        scales: { x: { time: true, ...(from === undefined ? {} : { range: () => [from, Math.max(from + 1, times[times.length - 1])] as [number, number] }) }, y: { range: (_, __, max) => [0, max * 1.08 || 1] } },
        bands: report.kinds.slice(1).map((_, i) => ({ series: [i + 1, i + 2] })), // each kind fills its own layer only
        axes: [axis, { ...axis, size: 72, values: (_, ticks) => ticks.map((t) => bytes(Math.round(t))) }],
        series: [
          {},
          ...report.kinds
            .map((k, i) => ({ label: k.kind, stroke: color(hues[i % hues.length]), fill: color(hues[i % hues.length]) + "55", width: 1.5, points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) }))
            .reverse(),
        ],
      },
      [times, ...series.reverse()],
      el,
    );
    const resize = new ResizeObserver(() => plot.setSize({ width: el.clientWidth, height: 240 }));
    resize.observe(el);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [report, dark, system, from]);
  return <div class="plot" ref={ref} role="img" aria-label={`Stored bytes over time, by kind: ${report.kinds.map((k) => `${k.kind} ${bytes(k.bytes)}`).join(", ")}`} />;
}

/** resolve computes a colour, as a canvas needs it: six hexadecimal digits. */
function resolve(el: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  el.append(probe);
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g)!.map(Number);
  probe.remove();
  return "#" + [r, g, b].map((v) => Math.round(v).toString(16).padStart(2, "0")).join("");
}

function Kinds({ report }: { report: StorageResponse }) {
  const all = [...report.kinds].sort((a, b) => Number(b.bytes - a.bytes));
  const most = Math.max(1, ...all.map((k) => Number(k.bytes)));
  return (
    <section>
      <h2>By kind</h2>
      <table class="bars">
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col" class="n">
              Blobs
            </th>
            <th scope="col" class="n">
              Stored
            </th>
          </tr>
        </thead>
        <tbody>
          {all.map((k) => (
            <tr key={k.kind}>
              <th scope="row">
                {k.kind}
                <meter min={0} max={most} value={Number(k.bytes)} aria-label={`${k.kind}, ${bytes(k.bytes)}`} />
              </th>
              <td class="n">{grouped(k.count)}</td>
              <td class="n">{bytes(k.bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Biggest({ report }: { report: StorageResponse }) {
  return (
    <section>
      <h2>Biggest conversations</h2>
      <table class="bars">
        <thead>
          <tr>
            <th scope="col">Conversation</th>
            <th scope="col" class="n">
              Blobs
            </th>
            <th scope="col" class="n">
              Brought
            </th>
          </tr>
        </thead>
        <tbody>
          {report.conversations.slice(0, 12).map((c) => (
            <tr key={c.id}>
              <th scope="row">{c.id ? <a href={to.conversation(c.id)}>{oneLine(c.title, 50) || c.id}</a> : "workspaces without a conversation"}</th>
              <td class="n">{grouped(c.blobs)}</td>
              <td class="n">{bytes(c.bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Garbage() {
  const [state, setState] = useState<{ busy?: boolean; res?: CollectResponse; problem?: api.Problem }>({});
  const preview = async () => {
    setState({ busy: true });
    try {
      setState({ res: await api.store.collect({ dryRun: true }) });
    } catch (err) {
      setState({ problem: api.problemOf(err) });
    }
  };
  return (
    <section>
      <h2>Garbage</h2>
      <p class="muted">Finds unreferenced content; removes nothing.</p>
      <button type="button" onClick={preview} disabled={state.busy}>
        {state.busy ? "Looking…" : "Preview a collection"}
      </button>
      <div role="status">
        {state.res && (
          <p>
            {state.res.removed === 0n ? "Nothing to remove" : `${count(state.res.removed, "blob")} (${bytes(state.res.removedBytes)}) to remove`}; {count(state.res.kept, "blob")} ({bytes(state.res.keptBytes)}) to keep. <Command text={command({ store: api.storeDir.value }, "gc")} />
          </p>
        )}
      </div>
      {state.problem && <Trouble problem={state.problem} />}
    </section>
  );
}

function Check() {
  const [state, setState] = useState<{ busy?: boolean; res?: FsckResponse; problem?: api.Problem }>({});
  const check = async () => {
    setState({ busy: true });
    try {
      for await (const res of api.store.fsck({ readData: true })) setState({ busy: !res.done, res });
    } catch (err) {
      setState({ problem: api.problemOf(err) });
    }
  };
  const r = state.res;
  return (
    <section>
      <h2>Integrity</h2>
      <p class="muted">Reads all content and verifies its hashes.</p>
      <button type="button" onClick={check} disabled={state.busy}>
        {state.busy ? "Checking…" : "Check the store"}
      </button>
      <div role="status">
        {r && !r.done && <p>{count(r.checked, "blob")} checked</p>}
        {r?.done && r.ok && (
          <p class="good">
            {count(r.blobs, "blob")} and {count(r.rows, "row")} are intact.
          </p>
        )}
        {r?.done && !r.ok && <p class="broken">Damage was found:</p>}
      </div>
      {r?.done && !r.ok && (
        <ul>
          {r.damage.slice(0, 50).map((d, i) => (
            <li key={i}>
              {d.kind} <code>{d.id}</code> {d.detail}
              {d.conversations.map((c) => (
                <>
                  {" "}
                  <a href={to.conversation(c)}>{c}</a>
                </>
              ))}
            </li>
          ))}
        </ul>
      )}
      {state.problem && <Trouble problem={state.problem} />}
    </section>
  );
}
