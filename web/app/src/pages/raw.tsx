import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api.ts";
import { count } from "../lib/format.ts";
import { Copy, Empty, Trouble, Waiting } from "../ui.tsx";
import { List } from "../virtual.tsx";
import type { Shown } from "./shown.ts";

const formats = ["md", "html", "json", "jsonl"] as const;
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
    read(id, "jsonl", abort.signal, most).then(
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
          <button type="button" key={f} onClick={() => void save(id, f)}>
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

async function read(id: string, format: string, signal: AbortSignal, limit: number): Promise<{ text: string; whole: boolean }> {
  const parts: Uint8Array[] = [];
  let size = 0;
  let whole = true;
  for await (const res of api.conversations.export({ id, format }, { signal })) {
    parts.push(res.chunk);
    size += res.chunk.length;
    if (size > limit) {
      whole = false;
      break;
    }
  }
  return { text: await new Blob(parts as BlobPart[]).text(), whole };
}

async function save(id: string, format: string): Promise<void> {
  const { text } = await read(id, format, new AbortController().signal, Infinity);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = `${id.replace(/[^\w.-]+/g, "_")}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
