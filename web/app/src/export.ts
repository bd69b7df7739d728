import * as api from "./api.ts";

/** The formats of an export. */
export const formats = ["md", "html", "json", "jsonl"] as const;

/** readExport reads the export of a conversation, up to a limit of bytes. */
export async function readExport(id: string, format: string, signal: AbortSignal, limit: number): Promise<{ text: string; whole: boolean }> {
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

/** saveExport saves the export of a conversation as a file. */
export async function saveExport(id: string, format: string): Promise<void> {
  const { text } = await readExport(id, format, new AbortController().signal, Infinity);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = `${id.replace(/[^\w.-]+/g, "_")}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
