import {
  MemorySession,
  UserError,
  applySessionHistoryMutations,
  type AgentInputItem,
  type SessionHistoryRewriteArgs,
  type SessionHistoryRewriteAwareSession,
  type SessionHistoryTransaction,
  type SessionHistoryTransactionArgs,
  type SessionHistoryTransactionAwareSession,
} from "@openai/agents-core";
import { changeDocuments, connect, hex, sha256, type Options, type Stet } from "@stet-dev/client";

import { headMetadata, headOf, newRuns, readHistory, utf8, type Head, type History, type NewRun } from "./history.js";
import { canonical, toJson, type Json } from "./items.js";
import { Names } from "./names.js";

export interface StetSessionOptions extends Options {
  /** The id of the session; a random one if it is left out. */
  sessionId?: string;
  /** The collection of documents that has the session: "openai-agents". */
  collection?: string;
}

/** Where a change begins, and what comes there instead of what there was. */
interface Change {
  readonly position: number;
  /** The number of items before it. */
  readonly before: number;
  /** The number of items in the documents. */
  readonly items: number;
  readonly documents: NewRun[];
  readonly operation?: Operation;
}

/** A transaction that was applied, by the digest of its id and of itself. */
interface Operation {
  readonly name: string;
  readonly digest: string;
}

/**
 * Keeps the items of a session in documents of a stet server: a head, and one document for
 * each call that adds items. Each change is one commit, which fails if another writer was
 * faster, and is then made again on top of what that one wrote.
 */
export class StetSession implements SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession {
  private readonly sessionId: string;
  private readonly collection: string;
  private readonly names: Names;
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly stet: Stet,
    options: Pick<StetSessionOptions, "sessionId" | "collection"> = {},
  ) {
    this.sessionId = options.sessionId ?? crypto.randomUUID();
    this.collection = options.collection ?? "openai-agents";
    this.names = new Names(this.sessionId);
  }

  /** Uses the server at an address. It does not connect before the first call. */
  static connect(address: string, token: string, options: StetSessionOptions = {}): StetSession {
    return new StetSession(connect(address, token, options), options);
  }

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) {
      return [];
    }
    await this.last.catch(() => {});
    const { runs } = await this.read(limit === undefined || Number.isNaN(limit) ? Infinity : Math.ceil(limit));
    const items = runs.flatMap((run) => run.items);
    return limit === undefined ? items : items.slice(Math.max(items.length - limit, 0));
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length === 0) {
      return;
    }
    const added = items.map(toJson);
    await this.inOrder(async () => {
      const documents = await newRuns(this.stet, added);
      await changeDocuments(async () => this.append(await this.head(), added.length, documents));
    });
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    return this.inOrder(() =>
      changeDocuments(async () => {
        const { head, runs } = await this.read(1);
        const last = runs.at(-1);
        if (last === undefined) {
          return undefined;
        }
        const rest = last.items.slice(0, -1).map(toJson);
        const before = head.length - last.items.length;
        await this.commit(head, { position: last.position, before, items: rest.length, documents: await newRuns(this.stet, rest) });
        return last.items.at(-1);
      }),
    );
  }

  async clearSession(): Promise<void> {
    const { collection, names } = this;
    await this.inOrder(() => this.stet.documents.commit({ collection, deletePrefixes: [names.all, names.operations] }));
  }

  /** Replaces all items, in one commit. */
  async replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void> {
    const replacement = items.map(toJson);
    await this.inOrder(async () => {
      const documents = await newRuns(this.stet, replacement);
      await changeDocuments(async () => this.commit(await this.head(), { position: 0, before: 0, items: replacement.length, documents }));
    });
  }

  async applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void> {
    if (args.mutations.length === 0) {
      return;
    }
    const mutations = structuredClone(args.mutations);
    await this.inOrder(() =>
      changeDocuments(async () => {
        const history = await this.read(Infinity);
        const items = history.runs.flatMap((run) => run.items);
        await this.rewrite(history, applySessionHistoryMutations(items, mutations).map(toJson));
      }),
    );
  }

  /** Changes the history once, however often it is called with the same operation. */
  async applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void> {
    const check = checked(args);
    check.catch(() => {}); // it is awaited later, when it is its turn
    await this.inOrder(async () => {
      const { operationId, transaction } = await check;
      const digest = await digestOf(canonical(transaction as Json));
      const operation = { name: this.names.operations + (await digestOf(operationId)), digest };
      const documents = await newRuns(this.stet, transaction.type === "append_items" ? transaction.items : []);
      await changeDocuments(() => this.apply(transaction, documents, operation));
    });
  }

  private async apply(transaction: Transaction, documents: NewRun[], operation: Operation): Promise<void> {
    // The operation is looked up after the items were read: if they do not match because it
    // was applied meanwhile, it is found.
    if (transaction.type === "append_items") {
      const head = await this.head();
      if (!(await this.applied(operation))) {
        await this.append(head, transaction.items.length, documents, operation);
      }
      return;
    }
    const history = await this.read(transaction.expectedSuffix.length);
    if (!(await this.applied(operation))) {
      await this.rewrite(history, replaced(history, transaction), operation);
    }
  }

  /** Reports whether an operation was applied. It fails if another one was, with the same id. */
  private async applied({ name, digest }: Operation): Promise<boolean> {
    const { documents } = await this.stet.documents.get({ collection: this.collection, names: [name] });
    const found = documents[0];
    if (found !== undefined && new TextDecoder().decode(found.metadata) !== digest) {
      throw new UserError("Session history operation was already applied with a different transaction.");
    }
    return found !== undefined;
  }

  private append(head: Head, items: number, documents: NewRun[], operation?: Operation): Promise<void> {
    return this.commit(head, { position: head.next, before: head.length, items, documents, ...(operation && { operation }) });
  }

  /** Makes the items of a history others. Documents before the first difference stay. */
  private async rewrite({ head, runs }: History, items: Json[], operation?: Operation): Promise<void> {
    let total = 0;
    let same = 0;
    let position = head.next;
    for (const run of runs) {
      total += run.items.length;
      const equal = run.items.every((item, index) => same + index < items.length && canonical(toJson(item)) === canonical(items[same + index]!));
      if (equal && position === head.next) {
        same += run.items.length;
      } else {
        position = Math.min(position, run.position);
      }
    }
    if (position === head.next && same === items.length && operation === undefined) {
      return;
    }
    const added = items.slice(same);
    const before = head.length - total + same;
    await this.commit(head, { position, before, items: added.length, documents: await newRuns(this.stet, added), ...(operation && { operation }) });
  }

  /** Changes the session on top of a head. It fails if another writer is faster. */
  private async commit(head: Head, { position, before, items, documents, operation }: Change): Promise<void> {
    const { collection, names } = this;
    const added = position === head.next && head.epoch !== "";
    const next = {
      epoch: added ? head.epoch : crypto.randomUUID().slice(0, 8),
      next: position + documents.length,
      length: before + items,
    };
    const set = (name: string, value: { metadata: Uint8Array; content?: NewRun["content"] }, type = "", expect?: string) => ({
      name,
      ...(expect === undefined ? {} : { expect }),
      change: { case: "set" as const, value: { type, content: { case: "data" as const, value: new Uint8Array() }, ...value } },
    });
    await this.stet.documents.commit({
      collection,
      deletePrefixes: names.from(position, head.next),
      changes: [
        set(names.head, { metadata: headMetadata(next) }, "", head.version),
        ...documents.map((document, index) => set(names.at(position + index), document, "application/json")),
        ...(operation === undefined ? [] : [set(operation.name, { metadata: utf8(operation.digest) }, "", "")]),
      ],
    });
  }

  private async head(): Promise<Head> {
    const { documents } = await this.stet.documents.get({ collection: this.collection, names: [this.names.head] });
    return headOf(documents[0]);
  }

  private read(limit: number): Promise<History> {
    return readHistory(this.stet, this.collection, this.names, limit);
  }

  /** Runs changes in the order of the calls. */
  private inOrder<T>(change: () => Promise<T>): Promise<T> {
    const mine = this.last.catch(() => {}).then(change);
    this.last = mine;
    return mine;
  }
}

/** A transaction whose items are JSON. */
type Transaction = { type: "append_items"; items: Json[] } | { type: "replace_suffix"; expectedSuffix: Json[]; replacement: Json[] };

/** Returns a transaction as it is now, or fails as the SDK's own session does. */
async function checked(args: SessionHistoryTransactionArgs): Promise<{ operationId: string; transaction: Transaction }> {
  // The SDK's session checks what it is given before anything else. With these items it has
  // no other reason to fail.
  const suffix: unknown = (args?.transaction as Partial<Record<string, unknown>> | undefined)?.["expectedSuffix"];
  const check = new MemorySession({ initialItems: cloned(suffix) }).applyHistoryTransaction(args);
  let json: () => Transaction;
  try {
    const transaction = jsonOf(args.transaction);
    json = () => transaction;
  } catch (error) {
    json = () => {
      throw error;
    };
  }
  const operationId = args?.operationId;
  await check;
  return { operationId, transaction: json() };
}

function cloned(items: unknown): AgentInputItem[] {
  try {
    return Array.isArray(items) ? (structuredClone(items) as AgentInputItem[]) : [];
  } catch {
    return [];
  }
}

function jsonOf(transaction: SessionHistoryTransaction): Transaction {
  return transaction.type === "append_items"
    ? { type: transaction.type, items: transaction.items.map(toJson) }
    : { type: transaction.type, expectedSuffix: transaction.expectedSuffix.map(toJson), replacement: transaction.replacement.map(toJson) };
}

/** Returns the items of a history with another suffix. */
function replaced({ head, runs }: History, { expectedSuffix, replacement }: Extract<Transaction, { type: "replace_suffix" }>): Json[] {
  const items = runs.flatMap((run) => run.items).map(toJson);
  const start = items.length - expectedSuffix.length;
  if (head.length < expectedSuffix.length || !expectedSuffix.every((item, index) => canonical(item) === canonical(items[start + index]!))) {
    throw new UserError("Session history suffix no longer matches the transaction precondition.");
  }
  return [...items.slice(0, start), ...replacement];
}

async function digestOf(text: string): Promise<string> {
  return hex(await sha256(utf8(text)));
}
