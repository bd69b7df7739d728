import type { LocalAgentDocument, LocalAgentRunDocument, LocalAgentStore } from "@cursor/sdk";

import type { Random } from "./random.js";

/** A call of a store, and what it is for people. */
export interface Call {
  name: string;
  input: unknown;
  run(store: LocalAgentStore): Promise<unknown>;
}

const ids = (kind: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${kind}-${((i + 1) * 0x9e3779b1 >>> 0).toString(16)}`);
const agentIds = ids("agent", 9);
const runIds = ids("run", 40);
const blobIds = Array.from({ length: 60 }, (_, i) => ((i + 1) * 0x85ebca6b >>> 0).toString(16).padStart(8, "0"));
const cwds = ["/projects/a", "/projects/b", "/projects/ü b"];
const keys = ["k1", "k2", "k3", "k/4", "k 5%"];
const words = ["", "one", "two words", "ünïcödé ☃", '"quoted"\n'];

/**
 * Draws calls. It leaves out calls for which the SDK's SQLite store does not do what the
 * documentation of the interface says, or loses data; store.test.ts shows what ours does:
 *
 * - the deletion of an agent whose active run has not ended is refused, after its events and
 *   checkpoints are gone;
 * - an empty filter deletes no events;
 * - lists sort ids by language but cursors compare them by characters, so pages lose ids with
 *   capitals, underscores or accents that share a time or turn;
 * - an id that a filter names twice is listed twice;
 * - endedAt of a run with the status "error", "queued" or "running", an empty list of
 *   parameters of a model, and unknown fields are dropped;
 * - ids of blobs that are not hexadecimal are changed; those of agents without a row are
 *   listed only by the agent's name;
 * - an idempotency key "" works once; fractions as limits of events are errors of SQLite.
 */
export class Script {
  /** Agents that exist. Checkpoints are created for those. */
  readonly agents = new Set<string>();
  /** Runs and blobs that were created; most of them still exist. */
  private readonly runs: { agentId: string; runId: string }[] = [];
  private readonly blobs: { agentId: string; blobId: string }[] = [];
  /** Cursors and offsets that lists returned. */
  private readonly cursors: Record<"agents" | "runs" | "checkpoints" | "events", string[]> = { agents: [], runs: [], checkpoints: [], events: [] };

  constructor(private readonly random: Random) {}

  next(): Call {
    const kinds = [
      ["agents.create", 6], ["agents.update", 6], ["agents.get", 4], ["agents.list", 6], ["agents.delete", 1],
      ["runs.create", 14], ["runs.update", 10], ["runs.get", 5], ["runs.list", 8], ["runs.delete", 2],
      ["checkpoints.create", 10], ["checkpoints.update", 4], ["checkpoints.get", 6], ["checkpoints.list", 6], ["checkpoints.delete", 2],
      ["runEvents.append", 24], ["runEvents.list", 10], ["runEvents.delete", 1],
    ] as const;
    const total = kinds.reduce((sum, [, weight]) => sum + weight, 0);
    let at = this.random.below(total);
    const [drawn] = kinds.find(([, weight]) => (at -= weight) < 0)!;
    const name = drawn === "checkpoints.create" && this.agents.size === 0 ? "agents.create" : drawn;
    const input = this.input(name);
    const [part, method] = name.split(".") as [keyof LocalAgentStore, string];
    return {
      name,
      input,
      run: (store) => (store[part] as unknown as Record<string, (input: unknown) => Promise<unknown>>)[method]!(structuredClone(input)),
    };
  }

  /** Notes what the script refers to later. */
  saw(call: Call, answer: unknown): void {
    if (call.name === "agents.create") {
      this.agents.add((answer as LocalAgentDocument).agentId);
    }
    if (call.name === "runs.create") {
      const { agentId, runId } = answer as LocalAgentRunDocument;
      this.runs.push({ agentId, runId });
    }
    if (call.name === "checkpoints.create") {
      const { agentId, blobId } = call.input as { agentId: string; blobId: string };
      this.blobs.push({ agentId, blobId });
    }
    const { nextCursor, nextOffset } = (answer ?? {}) as { nextCursor?: string; nextOffset?: string };
    if (nextCursor !== undefined) {
      this.cursors[call.name.split(".")[0] as "agents" | "runs" | "checkpoints"].push(nextCursor);
    }
    if (nextOffset !== undefined) {
      this.cursors.events.push(nextOffset);
    }
  }

  private input(name: string): unknown {
    const r = this.random;
    switch (name) {
      case "agents.create":
      case "agents.update":
        return { agent: this.agent() };
      case "agents.get":
        return { agentId: r.pick(agentIds) };
      case "agents.list":
        return this.listed("agents", r.oneIn(2) ? { cwd: r.pick([...cwds, "", "/none"]) } : {});
      case "agents.delete":
        return { filter: r.oneIn(12) ? {} : { agentIds: this.oneOrMore(agentIds), ...(r.oneIn(3) ? { cwd: r.pick(cwds) } : {}) } };
      case "runs.create":
        return { run: this.run() };
      case "runs.update":
        return { run: { ...this.run(), ...this.known(this.runs) } };
      case "runs.get":
        return { agentId: r.pick(agentIds), runId: r.pick(runIds), ...this.known(this.runs) };
      case "runs.list":
        return this.listed("runs", this.ids({ agentIds, runIds }));
      case "runs.delete":
        return { filter: r.oneIn(20) ? {} : { runIds: [r.pick(runIds)], ...(r.oneIn(3) ? { agentIds: r.some(agentIds, 4) } : {}) } };
      case "checkpoints.create":
        return { agentId: r.pick([...this.agents]), blobId: r.pick(blobIds), data: r.bytes(r.oneIn(20) ? 50_000 : 60) };
      case "checkpoints.update":
        return { agentId: r.pick(agentIds), blobId: r.pick(blobIds), ...this.known(this.blobs), data: r.bytes(60) };
      case "checkpoints.get":
        return { agentId: r.pick(agentIds), blobId: r.pick(blobIds), ...this.known(this.blobs) };
      case "checkpoints.list":
        return this.listed("checkpoints", this.ids({ agentIds, blobIds }));
      case "checkpoints.delete":
        return { filter: r.oneIn(20) ? {} : { agentIds: [r.pick(agentIds)], ...(r.oneIn(4) ? {} : { blobIds: this.oneOrMore(blobIds) }) } };
      case "runEvents.append":
        return {
          runId: r.pick(runIds.slice(0, 12)),
          eventType: r.pick(["status", "message", ""]),
          ...(r.oneIn(8) ? {} : { payload: this.payload() }),
          ...(r.oneIn(3) ? { payloadRef: r.pick([null, "ref"]) } : {}),
          ...(r.oneIn(2) ? { idempotencyKey: r.pick([null, ...keys]) } : {}),
        };
      case "runEvents.list":
        return {
          runId: r.pick(runIds.slice(0, 13)),
          ...(r.oneIn(2) ? { limit: r.pick([0, 1, 2, 3, 5, 1000]) } : {}),
          ...(r.oneIn(2) ? { afterOffset: r.pick([null, "", "0", "2", "999", "x", "-1", ...this.cursors.events.slice(-5)]) } : {}),
        };
      default:
        return { filter: { runIds: this.oneOrMore(runIds.slice(0, 20)) } };
    }
  }

  /** A filter of a list with cursors and limits, also bad ones. */
  private listed(kind: "agents" | "runs" | "checkpoints", filter: object): unknown {
    const r = this.random;
    if (r.oneIn(10)) {
      return undefined;
    }
    const bad = ["", "x", "e30", "bnVsbA", "eyJ1cGRhdGVkQXQiOiIxIiwiYWdlbnRJZCI6ImEifQ", "eyJ0dXJuTnVtYmVyIjoiMSIsInJ1bklkIjoiYSJ9"];
    const known = this.cursors[kind].slice(-8);
    return {
      filter: {
        ...filter,
        ...(r.oneIn(3) ? { limit: r.pick([0, 1, 2, 3, 7, 1000, -1, 1.5]) } : {}),
        ...(r.oneIn(3) ? { cursor: r.oneIn(4) || known.length === 0 ? r.pick(kind === "checkpoints" ? ["", "8", "zz"] : bad) : r.pick(known) } : {}),
      },
    };
  }

  private ids(all: Record<string, string[]>): object {
    const filter: Record<string, string[]> = {};
    for (const [name, from] of Object.entries(all)) {
      if (this.random.oneIn(2)) {
        filter[name] = this.random.some(from, 6);
      }
    }
    return filter;
  }

  /** Mostly one of the last that were created. */
  private known<T>(created: T[]): T | undefined {
    return created.length === 0 || this.random.oneIn(4) ? undefined : this.random.pick(created.slice(-30));
  }

  private oneOrMore(ids: string[]): string[] {
    return [...new Set([this.random.pick(ids), ...this.random.some(ids, 1)])];
  }

  private agent(): LocalAgentDocument {
    const r = this.random;
    return {
      agentId: r.pick(agentIds),
      cwd: r.pick(cwds),
      status: r.pick(["idle", "running", "error", "archived"] as const),
      createdAt: 1000 + r.below(5),
      updatedAt: 1000 + r.below(5),
      ...(r.oneIn(2) ? { activeRunId: r.pick([null, "run-gone"]) } : {}),
      ...(r.oneIn(2) ? { name: r.pick([null, ...words]) } : {}),
      ...(r.oneIn(2) ? { latestCheckpoint: this.ref() } : {}),
      ...(r.oneIn(2) ? { sdkMetadata: { word: r.pick(words), nested: { list: [1, null, r.below(100)] } } } : {}),
    };
  }

  private run(): LocalAgentRunDocument {
    const r = this.random;
    const status = r.pick(["queued", "running", "finished", "error", "cancelled", "expired"] as const);
    const ended = status === "finished" || status === "cancelled" || status === "expired";
    return {
      runId: r.pick(r.oneIn(2) ? runIds : runIds.slice(0, 8)),
      agentId: r.pick(agentIds),
      turnNumber: r.below(30),
      status,
      createdAt: 1000 + r.below(100),
      updatedAt: 1000 + r.below(100),
      ...(r.oneIn(2) ? { requestId: r.pick([null, ...words]) } : {}),
      ...(r.oneIn(2) ? { model: r.pick([null, { id: "m" }, { id: "m", params: [{ id: "p", value: "v" }] }]) } : {}),
      ...(r.oneIn(2) ? { result: r.pick([null, ...words]) } : {}),
      ...(r.oneIn(2) ? { error: r.pick([null, ...words]) } : {}),
      ...(r.oneIn(2) ? { usageRef: r.pick([null, ...words]) } : {}),
      ...(r.oneIn(2) ? { usage: r.pick([null, { inputTokens: 1, outputTokens: r.below(9), cacheReadTokens: 0, cacheWriteTokens: 0, totalTokens: 3 }]) } : {}),
      ...(r.oneIn(2) ? { startedAt: r.pick([null, 5]) } : {}),
      ...(r.oneIn(2) ? { endedAt: ended ? r.pick([null, 7]) : null } : {}),
      ...(r.oneIn(2) ? { startCheckpointRef: this.ref() } : {}),
      ...(r.oneIn(2) ? { latestCheckpointRef: this.ref() } : {}),
    };
  }

  private ref(): LocalAgentDocument["latestCheckpoint"] {
    return this.random.oneIn(3) ? null : { schemaVersion: 1, rootBlobId: this.random.pick(blobIds) };
  }

  private payload(): unknown {
    const r = this.random;
    return r.pick([null, 0, false, "", r.pick(words), [1, [null]], { a: { b: r.below(1000) } }, { text: "x".repeat(r.below(r.oneIn(10) ? 20_000 : 40)) }]);
  }
}

/** Reads all that a store has, page by page. */
export async function everything(store: LocalAgentStore): Promise<unknown> {
  const events: Record<string, unknown> = {};
  for (const runId of runIds) {
    events[runId] = (await store.runEvents.list({ runId, limit: 100_000 })).items;
  }
  return {
    agents: await pages((filter) => store.agents.list({ filter })),
    runs: await pages((filter) => store.runs.list({ filter })),
    checkpoints: await pages((filter) => store.checkpoints.list({ filter })),
    events,
  };
}

async function pages<T>(list: (filter: { limit: number; cursor?: string }) => Promise<{ items: readonly T[]; nextCursor?: string }>): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const part = await list({ limit: 1000, ...(cursor === undefined ? {} : { cursor }) });
    all.push(...part.items);
    cursor = part.nextCursor;
  } while (cursor !== undefined);
  return all;
}
