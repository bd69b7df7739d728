import { documentContent, eachDocument, hasReason, type DocumentQuery, type NewContent, type Stet } from "@stet-dev/client";
import type { Document } from "@stet-dev/client/gen/stet/v1/document_service_pb";

/** Larger contents are put as blobs: the server accepts messages of 4 MiB. */
const messageBytes = 1 << 20;

/** The number of names in one request. */
const requestNames = 1000;

/** The number of prefixes in one commit. */
const commitPrefixes = 100;

/** A document that is set if it has the expected version. */
export interface Change {
  name: string;
  /** "" if the document must not exist; undefined if any version will do. */
  expect?: string;
  /** Without it the version is only checked. */
  set?: { data?: Uint8Array; metadata?: unknown };
  delete?: boolean;
}

/** A document without its content. */
export interface Entry {
  name: string;
  version: string;
  metadata: unknown;
}

/** A document with its content. */
export interface Stored extends Entry {
  data: Uint8Array;
}

/** The collection of documents of a store. */
export class Documents {
  constructor(
    private readonly stet: Stet,
    private readonly collection: string,
  ) {}

  /** Returns the documents of some names in their order, undefined for those that do not exist. */
  async get(...names: string[]): Promise<(Stored | undefined)[]> {
    const found = new Map<string, Stored>();
    for (let from = 0; from < names.length; from += requestNames) {
      const { documents } = await this.stet.documents.get({
        collection: this.collection,
        names: names.slice(from, from + requestNames),
      });
      for (const document of documents) {
        found.set(document.name, await this.stored(document));
      }
    }
    return names.map((name) => found.get(name));
  }

  /** Returns a document without its content. */
  async entry(name: string): Promise<Entry | undefined> {
    const first = await this.first(name);
    return first?.name === name ? first : undefined;
  }

  /** Returns the first or, in a reversed list, the last document whose name begins with a prefix. */
  async first(prefix: string, reverse = false): Promise<Entry | undefined> {
    for await (const document of this.each({ prefix, reverse, namesOnly: true, pageSize: 1 })) {
      return entry(document);
    }
    return undefined;
  }

  /** Lists the documents whose names begin with a prefix, in the order of their names. */
  async *entries(prefix: string): AsyncGenerator<Entry> {
    for await (const document of this.each({ prefix, namesOnly: true, pageSize: requestNames })) {
      yield entry(document);
    }
  }

  /** Returns up to so many documents of a prefix behind a name, with their contents. */
  async after(prefix: string, after: string, limit: number): Promise<Stored[]> {
    const found: Stored[] = [];
    if (limit <= 0) {
      return found;
    }
    for await (const document of this.each({ prefix, after, pageSize: Math.min(limit, requestNames) })) {
      found.push(await this.stored(document));
      if (found.length >= limit) {
        break;
      }
    }
    return found;
  }

  /**
   * Makes all changes or none. Documents whose names begin with one of the prefixes are
   * deleted before. It fails if a document does not have its expected version: see isConflict.
   */
  async commit(changes: Change[], deletePrefixes: string[] = []): Promise<void> {
    await this.stet.documents.commit({
      collection: this.collection,
      changes: await Promise.all(changes.map((change) => this.change(change))),
      deletePrefixes,
    });
  }

  /** Deletes all documents whose names begin with one of the prefixes. */
  async deleteAll(prefixes: string[]): Promise<void> {
    for (let from = 0; from < prefixes.length; from += commitPrefixes) {
      await this.commit([], prefixes.slice(from, from + commitPrefixes));
    }
  }

  private async change({ name, expect, set, delete: remove }: Change) {
    const base = { name, ...(expect === undefined ? {} : { expect }) };
    if (set !== undefined) {
      const value = { type: "", metadata: encode(set.metadata), content: await this.content(set.data ?? new Uint8Array()) };
      return { ...base, change: { case: "set" as const, value } };
    }
    return remove === true ? { ...base, change: { case: "delete" as const, value: true } } : base;
  }

  private async content(data: Uint8Array): Promise<NewContent> {
    return data.length <= messageBytes ? { case: "data", value: data } : { case: "blob", value: await this.stet.blobs.put(data) };
  }

  private each(query: Omit<DocumentQuery, "collection">): AsyncGenerator<Document> {
    return eachDocument(this.stet, { collection: this.collection, ...query });
  }

  private async stored(document: Document): Promise<Stored> {
    return { ...entry(document), data: await documentContent(this.stet, document) };
  }
}

/** Whether a document did not have its expected version. */
export function isConflict(error: unknown): boolean {
  return hasReason(error, "document-conflict");
}

/** Makes a name of an id of any characters: no slash separates, no control character is in the way. */
export function named(kind: string, ...ids: string[]): string {
  return [kind, ...ids.map(encodeURIComponent)].join("/");
}

/** The last id of a name. */
export function lastId(name: string): string {
  return decodeURIComponent(name.slice(name.lastIndexOf("/") + 1));
}

/** A number as text that sorts like it. */
export function sortable(number: number): string {
  return String(number).padStart(16, "0");
}

export function encode(value: unknown): Uint8Array {
  return value === undefined ? new Uint8Array() : new TextEncoder().encode(JSON.stringify(value));
}

export function decode(bytes: Uint8Array): unknown {
  return bytes.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(bytes));
}

function entry({ name, version, metadata }: Document): Entry {
  return { name, version, metadata: decode(metadata) };
}
