import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { formats, readExport, saveExport } from "../export.ts";
import { count } from "../lib/format.ts";
import { Copy, Empty, Trouble, Waiting } from "../ui.tsx";
import { List } from "../virtual.tsx";
import type { Shown } from "./shown.ts";

const most = 16 << 20; // limit of the view; a download has everything

/** Raw shows the export of a conversation, and saves it as a file. */
export default function Raw({ shown }: { shown: Shown }) {
  const id = shown.info.id;
  const [lines, setLines] = useState<string[]>();
  const [cut, setCut] = useState(false);
  const [problem, setProblem] = useState<api.Problem>();
  const [round, setRound] = useState(0);
  const head = String(shown.info.head);
  const first = useRef(true);
  useEffect(() => {
    const abort = new AbortController();
    if (first.current) setLines(undefined);
    first.current = false;
    setProblem(undefined);
    readExport(id, "jsonl", abort.signal, most).then(
      ({ text, whole }) => {
        setLines(text.replace(/\n$/, "").split("\n"));
        setCut(!whole);
      },
      (err) => !abort.signal.aborted && setProblem(api.problemOf(err)),
    );
    return () => abort.abort();
  }, [id, head, round]);
  if (problem) return <Trouble problem={problem} again={() => setRound(round + 1)} />;
  if (!lines) return <Waiting what="Reading" />;
  if (lines.length === 1 && lines[0] === "") return <Empty title="Nothing to show" />;
  return (
    <div class="raw">
      <div class="raw-head">
        <span>
          {count(lines.length, "line")} of JSON{cut && ", the beginning"}
        </span>
        <span class="spring" />
        <span class="muted">Save as</span>
        {formats.map((f) => (
          <button type="button" key={f} onClick={() => void saveExport(id, f)}>
            {f}
          </button>
        ))}
      </div>
      <List
        count={lines.length}
        estimate={24}
        role="list"
        label="Lines of JSON"
        class="raw-lines"
        render={(i) => (
          <div class="raw-line">
            <span class="number">{i + 1}</span>
            <code>{lines[i].length > 4000 ? lines[i].slice(0, 4000) + "…" : lines[i]}</code>
            <Copy text={lines[i]} label={`line ${i + 1}`} />
          </div>
        )}
      />
    </div>
  );
}
