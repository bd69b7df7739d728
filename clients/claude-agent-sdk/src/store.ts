import {
  foldSessionSummary,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
  type SessionSummaryEntry,
} from "@anthropic-ai/claude-agent-sdk";
import { changeDocuments, connect, documentContent, eachDocument, type NewContent, type Options, type Stet } from "@stet-dev/client";
import type { Document } from "@stet-dev/client/gen/stet/v1/document_service_pb";

import { names, partsOf, sessionsOf, subagentsOf, unescaped, type Names } from "./names.js";

/** What entries of one append may have inside its message; larger ones are put as blobs. */
const messageBytes = 2 << 20;

/** The size of a blob that fits into one message. */
const blobBytes = 3 << 20;

/** A larger summary is not kept. The SDK reads such a session instead. */
const summaryBytes = 512 << 10;

export interface StetSessionStoreOptions extends Options {
  /** The collection of documents that has the sessions: "claude-agent-sdk". */
  collection?: string;
}

/**
 * What the head of a transcript says. Its content is the summary as JSON; without content
 * there is none.
 */
interface Head {
  readonly document: Document;
  /** Tells apart what was written before and after a deletion. */
  readonly epoch: string;
  /** The number of parts. */
  readonly parts: number;
}

/**
 * Keeps sessions in documents of a stet server: a transcript is a head and one part for
 * each append. The parts, one after another, are its JSONL file. Head and parts of an
 * append are committed together, and only if no other writer was faster.
 */
export class StetSessionStore implements SessionStore {
  private readonly collection: string;
  private readonly last = new Map<string, Promise<unknown>>();

  constructor(
    private readonly stet: Stet,
    options: Pick<StetSessionStoreOptions, "collection"> = {},
  ) {
    this.collection = options.collection ?? "claude-agent-sdk";
  }

  /** Uses the server at an address. It does not connect before the first call. */
  static connect(address: string, token: string, options: StetSessionStoreOptions = {}): StetSessionStore {
    return new StetSessionStore(connect(address, token, options), options);
  }

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const at = names(key);
    if (entries.length === 0) {
      return;
    }
    // Entries are taken as they are now, not as they are when it is their turn.
    const lines = entries.map((entry) => JSON.stringify(entry));
    await this.inOrder(at, async () => {
      const parts = await this.contents(new TextEncoder().encode(lines.map((line) => `${line}\n`).join("")));
      const read = key.subpath === undefined ? lines.map((line) => JSON.parse(line) as SessionStoreEntry) : [];
      await changeDocuments(() => this.commit(key, at, parts, read));
    });
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const at = names(key);
    for (let head = await this.head(at); head !== undefined; ) {
      const entries = new Entries();
      let parts = 0;
      for await (const document of this.list(partsBegin(at, head))) {
        if (parts === head.parts) {
          break; // the others belong to appends since the head was read
        }
        entries.add(await documentContent(this.stet, document));
        parts += 1;
      }
      if (parts === head.parts) {
        return entries.all;
      }
      const now = await this.head(at);
      if (now?.epoch === head.epoch) {
        throw new Error(`session ${key.sessionId} has ${parts} of ${head.parts} parts`);
      }
      head = now;
    }
    return null;
  }

  async listSessions(projectKey: string): Promise<Array<{ sessionId: string; mtime: number }>> {
    const prefix = sessionsOf(projectKey);
    const sessions = [];
    for await (const document of this.list(prefix, true)) {
      sessions.push({ sessionId: unescaped(document.name.slice(prefix.length)), mtime: Number(document.changedMs) });
    }
    return sessions;
  }

  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    const prefix = sessionsOf(projectKey);
    const summaries = [];
    for await (const document of this.list(prefix)) {
      const summary = await this.summary(unescaped(document.name.slice(prefix.length)), document);
      if (summary !== undefined) {
        summaries.push(summary);
      }
    }
    return summaries;
  }

  async delete(key: SessionKey): Promise<void> {
    const at = names(key);
    const whole = [subagentsOf(at.session), partsOf(at.session)];
    await this.inOrder(at, () =>
      this.stet.documents.commit({
        collection: this.collection,
        changes: [{ name: at.head, change: { case: "delete", value: true } }],
        deletePrefixes: key.subpath === undefined ? whole : [at.parts],
      }),
    );
  }

  async listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]> {
    const prefix = subagentsOf(names({ projectKey: key.projectKey, sessionId: key.sessionId }).session);
    const subpaths = [];
    for await (const document of this.list(prefix, true)) {
      subpaths.push(unescaped(document.name.slice(prefix.length)));
    }
    return subpaths;
  }

  /** Adds parts on top of the head as it is. It fails if another writer is faster. */
  private async commit(key: SessionKey, at: Names, parts: NewContent[], entries: SessionStoreEntry[]): Promise<void> {
    const head = await this.head(at);
    const next = { epoch: head?.epoch ?? crypto.randomUUID().slice(0, 8), parts: (head?.parts ?? 0) + parts.length };
    const summary = key.subpath === undefined ? await this.fold(key, head, entries) : new Uint8Array();
    await this.stet.documents.commit({
      collection: this.collection,
      changes: [
        {
          name: at.head,
          expect: head?.document.version ?? "",
          change: {
            case: "set",
            value: { type: "application/json", metadata: encode(next), content: { case: "data", value: summary } },
          },
        },
        ...parts.map((content, index) => ({
          name: partsBegin(at, next) + String((head?.parts ?? 0) + index).padStart(12, "0"),
          expect: "",
          change: { case: "set" as const, value: { type: "application/jsonl", content } },
        })),
      ],
    });
  }

  /** Returns the summary after some entries, or nothing if it is too large to be kept. */
  private async fold(key: SessionKey, head: Head | undefined, entries: SessionStoreEntry[]): Promise<Uint8Array> {
    const before = head && (await this.summary(key.sessionId, head.document));
    if (head !== undefined && before === undefined) {
      return new Uint8Array();
    }
    const data = encode(foldSessionSummary(before, key, entries).data);
    return data.length > summaryBytes ? new Uint8Array() : data;
  }

  /** Its time is when the server changed the head, as in the list of sessions. */
  private async summary(sessionId: string, document: Document): Promise<SessionSummaryEntry | undefined> {
    if (document.size === 0n) {
      return undefined;
    }
    const data = decode(await documentContent(this.stet, document)) as Record<string, unknown>;
    return { sessionId, mtime: Number(document.changedMs), data };
  }

  private async head(at: Names): Promise<Head | undefined> {
    const { documents } = await this.stet.documents.get({ collection: this.collection, names: [at.head] });
    const document = documents[0];
    return document && { document, ...(decode(document.metadata) as { epoch: string; parts: number }) };
  }

  private list(prefix: string, namesOnly = false): AsyncGenerator<Document> {
    return eachDocument(this.stet, { collection: this.collection, prefix, namesOnly });
  }

  /** Cuts bytes into contents. What does not fit into the message of the commit is put before. */
  private async contents(data: Uint8Array): Promise<NewContent[]> {
    if (data.length <= messageBytes) {
      return [{ case: "data", value: data }];
    }
    const contents: NewContent[] = [];
    for (let at = 0; at < data.length; at += blobBytes) {
      contents.push({ case: "blob", value: await this.stet.blobs.put(data.subarray(at, at + blobBytes)) });
    }
    return contents;
  }

  /** Runs changes of a session in the order of the calls. */
  private async inOrder(at: Names, change: () => Promise<unknown>): Promise<void> {
    const before = this.last.get(at.session) ?? Promise.resolve();
    const mine = before.catch(() => {}).then(change);
    this.last.set(at.session, mine);
    try {
      await mine;
    } finally {
      if (this.last.get(at.session) === mine) {
        this.last.delete(at.session);
      }
    }
  }
}

/** Reads entries from the parts of a transcript. A line may be in several of them. */
class Entries {
  readonly all: SessionStoreEntry[] = [];
  private readonly uuids = new Set<string>();
  private readonly decoder = new TextDecoder();
  private rest = "";

  add(part: Uint8Array): void {
    const lines = (this.rest + this.decoder.decode(part, { stream: true })).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      this.entry(JSON.parse(line) as SessionStoreEntry);
    }
  }

  /** The SDK may append an entry again, after a failure or an import. The first one counts. */
  private entry(entry: SessionStoreEntry): void {
    if (typeof entry.uuid === "string") {
      if (this.uuids.has(entry.uuid)) {
        return;
      }
      this.uuids.add(entry.uuid);
    }
    this.all.push(entry);
  }
}

function partsBegin(at: Names, head: { epoch: string }): string {
  return `${at.parts}${head.epoch}/`;
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function decode(data: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(data));
}
