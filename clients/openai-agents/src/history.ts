import type { AgentInputItem } from "@openai/agents-core";
import { documentContent, eachDocument, type NewContent, type Stet } from "@stet-dev/client";
import type { Document } from "@stet-dev/client/gen/stet/v1/document_service_pb";

import { fromJson, type Json } from "./items.js";
import type { Names } from "./names.js";

/** How many items are kept in one document, and how many bytes of them if it is more than one. */
const runItems = 100;
const runBytes = 512 << 10;

/** What the documents of a commit may have inside its message; the others are put as blobs. */
const messageBytes = 2 << 20;

/** The size of a blob that fits into one message. */
const blobBytes = 3 << 20;

/** How often a history is read while it is rewritten. */
const attempts = 100;

/** The changes of one commit, without the head and an operation. */
const maxDocuments = 998;

/** What the head of a session says. */
export interface Head {
  /** The version of its document; empty if there is none. */
  readonly version: string;
  /** Changes whenever something else happens than that items are added. */
  readonly epoch: string;
  /** The position of the next document. */
  readonly next: number;
  /** The number of items. */
  readonly length: number;
}

/** Items that are kept together, in one document or, if an item is large, in several. */
export interface Run {
  readonly position: number;
  readonly items: AgentInputItem[];
}

/** The end of a history, or all of it. */
export interface History {
  readonly head: Head;
  readonly runs: Run[];
}

/** A document before it has a name. The last one of a run says how many items and documents it has. */
export interface NewRun {
  readonly metadata: Uint8Array;
  readonly content: NewContent;
}

const nothing: Head = { version: "", epoch: "", next: 0, length: 0 };

/** Returns the head of the document, or that of a session without items. */
export function headOf(document: Document | undefined): Head {
  return document === undefined ? nothing : { ...(decode(document.metadata) as Omit<Head, "version">), version: document.version };
}

/** Returns the metadata of a head. */
export function headMetadata({ epoch, next, length }: Omit<Head, "version">): Uint8Array {
  return encode({ epoch, next, length });
}

/** Puts items into documents, and large ones as blobs. */
export async function newRuns(stet: Stet, items: Json[]): Promise<NewRun[]> {
  const documents: NewRun[] = [];
  let room = messageBytes;
  for (const { data, count } of packed(items)) {
    const parts = Math.ceil(data.length / blobBytes);
    for (let part = 0; part < parts; part++) {
      const value = data.subarray(part * blobBytes, (part + 1) * blobBytes);
      const metadata = encode(part === parts - 1 ? { items: count, parts } : {});
      const inside = value.length <= room;
      room -= inside ? value.length : 0;
      documents.push({ metadata, content: inside ? { case: "data", value } : { case: "blob", value: await stet.blobs.put(value) } });
    }
  }
  if (documents.length > maxDocuments) {
    throw new RangeError(`${items.length} items are too many for one change`);
  }
  return documents;
}

/** Joins items while they are few and small. */
function* packed(items: Json[]): Generator<{ data: Uint8Array; count: number }> {
  let texts: string[] = [];
  let size = 0;
  for (const item of items) {
    const text = JSON.stringify(item);
    if (texts.length === runItems || (texts.length > 0 && size + text.length > runBytes)) {
      yield { data: utf8(`[${texts.join(",")}]`), count: texts.length };
      [texts, size] = [[], 0];
    }
    texts.push(text);
    size += text.length;
  }
  if (texts.length > 0) {
    yield { data: utf8(`[${texts.join(",")}]`), count: texts.length };
  }
}

/** Reads at least the last items of a session, as they are at one moment. */
export async function readHistory(stet: Stet, collection: string, names: Names, limit: number): Promise<History> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const reader = new Reader(names, limit);
    const pageSize = limit < 1000 ? limit + 1 : 0;
    for await (const document of eachDocument(stet, { collection, prefix: names.all, reverse: true, pageSize })) {
      if (!(await reader.add(document, stet))) {
        break;
      }
    }
    // A list may see half of a change. The epoch is the same if there was none that matters.
    const { documents } = await stet.documents.get({ collection, names: [names.head] });
    if (headOf(documents[0]).epoch === reader.head.epoch) {
      return reader.history();
    }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(100, 2 ** attempt)));
  }
  throw new Error("the session is rewritten too often to be read");
}

/** Takes the documents of a session from the last one on. */
class Reader {
  head = nothing;
  private first = true;
  private position = 0;
  private count = 0;
  private gap = false;
  private readonly runs: Array<{ position: number; parts: Uint8Array[] }> = [];
  /** The documents that the last run lacks. */
  private lacks = 0;

  constructor(
    private readonly names: Names,
    private readonly limit: number,
  ) {}

  /** Takes a document, and reports whether more are wanted. */
  async add(document: Document, stet: Stet): Promise<boolean> {
    if (this.first) {
      this.first = false;
      this.gap = document.name !== this.names.head;
      this.head = headOf(this.gap ? undefined : document);
      this.position = this.head.next;
      return !this.gap;
    }
    const position = this.names.positionOf(document.name);
    if (position >= this.head.next) {
      return true; // added since
    }
    if (position !== this.position - 1) {
      this.gap = true;
      return false;
    }
    this.position = position;
    if (this.lacks === 0) {
      const { items, parts } = decode(document.metadata) as { items: number; parts: number };
      this.runs.push({ position, parts: [] });
      this.lacks = parts;
      this.count += items;
    }
    const run = this.runs.at(-1)!;
    run.position = position;
    run.parts.push(await documentContent(stet, document));
    this.lacks -= 1;
    return this.lacks > 0 || this.count < this.limit;
  }

  history(): History {
    if (this.gap || this.lacks > 0 || this.count < Math.min(this.limit, this.head.length)) {
      throw new Error(`a document of the session is missing: ${this.names.all}`);
    }
    const runs = this.runs.reverse().map(({ position, parts }) => ({ position, items: itemsOf(parts.reverse()) }));
    return { head: this.head, runs };
  }
}

function itemsOf(parts: Uint8Array[]): AgentInputItem[] {
  const decoder = new TextDecoder();
  const text = parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
  return (JSON.parse(text) as Json[]).map(fromJson);
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function encode(value: unknown): Uint8Array {
  return utf8(JSON.stringify(value));
}

function decode(data: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(data));
}
