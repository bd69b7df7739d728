import type { LocalAgentRunEventDocument, LocalAgentRunEventFilter, LocalAgentRunEventListResult, LocalAgentStoreRunEvents } from "@cursor/sdk";
import { changeDocuments } from "@stet-dev/client";

import { decode, encode, lastId, named, sortable, type Change, type Documents } from "./documents.js";

type Append = Parameters<LocalAgentStoreRunEvents["append"]>[0];

/** The number of events of a list, unless the caller says another. */
const pageEvents = 100;

/**
 * The events of runs: one document each by its number, and one by its idempotency key, which
 * names the number.
 */
export class RunEvents implements LocalAgentStoreRunEvents {
  /** The last append of each run that is under way. Events are numbered in the order of the calls. */
  private readonly appending = new Map<string, Promise<unknown>>();

  constructor(private readonly documents: Documents) {}

  /** Appends an event, unless the run has one with its idempotency key, which it returns then. */
  async append(event: Append): Promise<LocalAgentRunEventDocument> {
    const { runId } = event;
    const appended = (this.appending.get(runId) ?? Promise.resolve()).then(() => this.add(event));
    const settled = appended.catch(() => undefined); // the next append does not fail with this one
    this.appending.set(runId, settled);
    try {
      return await appended;
    } finally {
      if (this.appending.get(runId) === settled) {
        this.appending.delete(runId);
      }
    }
  }

  private add({ runId, eventType, payload = null, payloadRef = null, idempotencyKey = null }: Append): Promise<LocalAgentRunEventDocument> {
    const key = idempotencyKey === null ? undefined : keyName(runId, idempotencyKey);
    const added = async (): Promise<LocalAgentRunEventDocument> => {
      const [known, last] = await Promise.all([key === undefined ? undefined : this.documents.entry(key), this.documents.first(eventName(runId), true)]);
      if (known !== undefined) {
        const [stored] = await this.documents.get(eventName(runId, known.metadata as number));
        return stored === undefined ? added() : (decode(stored.data) as LocalAgentRunEventDocument); // deleted meanwhile, with the key
      }
      const seq = last === undefined ? 1 : Number(lastId(last.name)) + 1;
      const event = { runId, seq, offset: String(seq), eventType, payload, payloadRef, idempotencyKey, createdAt: Date.now() };
      const changes: Change[] = [{ name: eventName(runId, seq), expect: "", set: { data: encode(event) } }];
      if (last !== undefined) {
        changes.push({ name: last.name, expect: last.version }); // the events were not deleted meanwhile
      }
      if (key !== undefined) {
        changes.push({ name: key, expect: "", set: { metadata: seq } });
      }
      await this.documents.commit(changes);
      return event;
    };
    return changeDocuments(added);
  }

  async list({ runId, afterOffset, limit = pageEvents }: Parameters<LocalAgentStoreRunEvents["list"]>[0]): Promise<LocalAgentRunEventListResult> {
    const after = eventName(runId, fromOffset(afterOffset));
    const found = await this.documents.after(eventName(runId), after, limit > 0 ? limit + 1 : 0);
    const items = found.map(({ data }) => decode(data) as LocalAgentRunEventDocument);
    const part = items.slice(0, Math.max(0, limit));
    const last = part.at(-1);
    return last !== undefined && items.length > part.length ? { items: part, nextOffset: last.offset } : { items: part };
  }

  async delete({ filter: { runIds = [] } }: { filter: LocalAgentRunEventFilter }): Promise<void> {
    const prefixes = runIds.length === 0 ? [named("events", "")] : [...new Set(runIds)].map(eventsPrefix);
    await this.documents.deleteAll(prefixes);
  }
}

/** What the names of all documents of the events of a run begin with. */
export function eventsPrefix(runId: string): string {
  return named("events", runId, "");
}

/** The name of an event, or the prefix of all. */
function eventName(runId: string, seq?: number): string {
  return named("events", runId, "seq", seq === undefined ? "" : sortable(seq));
}

function keyName(runId: string, key: string): string {
  return named("events", runId, "key", key);
}

function fromOffset(offset: string | null | undefined): number {
  const seq = Number(offset ?? 0);
  if (!Number.isSafeInteger(seq) || seq < 0) {
    throw new Error(`Invalid run event offset ${offset}`);
  }
  return seq;
}
