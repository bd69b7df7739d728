import type { LocalAgentRunDocument, LocalAgentRunFilter, LocalAgentStoreListResult, LocalAgentStoreRuns } from "@cursor/sdk";
import { changeDocuments } from "@stet-dev/client";

import { touched } from "./agents.js";
import { decode, encode, lastId, named, sortable, type Change, type Documents } from "./documents.js";
import { eventsPrefix } from "./events.js";
import { compare, fromCursor, lets, page, toCursor } from "./paging.js";

/** The number of runs that are removed in one commit. */
const removedRuns = 90;

/** What is listed of a run without reading it. */
export interface ListedRun {
  agentId: string;
  runId: string;
  turnNumber: number;
  /** Names the document of the turn, and its version. */
  turn: { name: string; version: string };
}

/**
 * Runs, two documents each: the run by its id, and the turn of its agent, which names the
 * run. So ids of runs and turns of agents are unique, and the runs of an agent are listed
 * without reading others.
 */
export class Runs implements LocalAgentStoreRuns {
  constructor(private readonly documents: Documents) {}

  async get({ agentId, runId }: { agentId: string; runId: string }): Promise<LocalAgentRunDocument | null> {
    const [stored] = await this.documents.get(runName(runId));
    const run = stored === undefined ? undefined : (decode(stored.data) as LocalAgentRunDocument);
    return run?.agentId === agentId ? run : null;
  }

  create({ run }: { run: LocalAgentRunDocument }): Promise<LocalAgentRunDocument> {
    const full = complete(run);
    return changeDocuments(async () => {
      const [same, turn] = await this.documents.get(runName(run.runId), turnName(run));
      const owner = same === undefined ? undefined : (decode(same.data) as LocalAgentRunDocument).agentId;
      if (turn !== undefined && owner !== run.agentId) {
        throw new Error(`Turn ${run.turnNumber} already exists for agent ${run.agentId}`);
      }
      if (owner !== undefined) {
        throw new Error(`Run ${run.runId} already exists for agent ${owner}`);
      }
      await this.documents.commit([await touched(this.documents, run.agentId), write(full, ""), writeTurn(full)]);
      return full;
    });
  }

  /** Replaces a run, but for the time of its creation. */
  update({ run }: { run: LocalAgentRunDocument }): Promise<LocalAgentRunDocument> {
    return changeDocuments(async () => {
      const [stored] = await this.documents.get(runName(run.runId));
      const before = stored === undefined ? undefined : (decode(stored.data) as LocalAgentRunDocument);
      if (stored === undefined || before?.agentId !== run.agentId) {
        throw new Error(`Run ${run.runId} not found for agent ${run.agentId}`);
      }
      const full = complete({ ...run, createdAt: before.createdAt });
      const changes = [write(full, stored.version)];
      if (before.turnNumber !== full.turnNumber) {
        if ((await this.documents.entry(turnName(full))) !== undefined) {
          throw new Error(`Turn ${run.turnNumber} already exists for agent ${run.agentId}`);
        }
        changes.push({ name: turnName(before), delete: true }, writeTurn(full));
      }
      await this.documents.commit(changes);
      return full;
    });
  }

  /** Deletes runs with their events. */
  delete({ filter }: { filter: LocalAgentRunFilter }): Promise<void> {
    return changeDocuments(async () => {
      const { changes, prefixes } = await removal(this.documents, await this.matching(filter));
      if (changes.length > 0) {
        await this.documents.commit(changes, prefixes);
      }
    });
  }

  async list({ filter = {} }: { filter?: LocalAgentRunFilter } = {}): Promise<LocalAgentStoreListResult<LocalAgentRunDocument>> {
    const from = fromCursor(filter.cursor, { turnNumber: 0, runId: "" }, "run");
    const listed = (await this.matching(filter)).sort(byTurn);
    const { rows, last } = page(from === undefined ? listed : listed.filter((run) => byTurn(run, from) > 0), filter.limit);
    const found = await this.documents.get(...rows.map(({ runId }) => runName(runId)));
    const items = found.flatMap((stored) => (stored === undefined ? [] : [decode(stored.data) as LocalAgentRunDocument]));
    return last === undefined ? { items } : { items, nextCursor: toCursor({ turnNumber: last.turnNumber, runId: last.runId }) };
  }

  private async matching({ agentIds = [], runIds }: LocalAgentRunFilter): Promise<ListedRun[]> {
    return (await runsOf(this.documents, agentIds)).filter(({ runId }) => lets(runIds, runId));
  }
}

/** Whether an agent has a run that has not ended. */
export async function isActive(documents: Documents, agentId: string, runId: string): Promise<boolean> {
  const run = await new Runs(documents).get({ agentId, runId });
  return run?.status === "queued" || run?.status === "running";
}

/** Lists the runs of some agents, or of all of them. */
export async function runsOf(documents: Documents, agentIds: readonly string[]): Promise<ListedRun[]> {
  const prefixes = agentIds.length === 0 ? [named("turns", "")] : [...new Set(agentIds)].map((id) => named("turns", id, ""));
  const runs: ListedRun[] = [];
  for (const prefix of prefixes) {
    for await (const { name, version, metadata } of documents.entries(prefix)) {
      const agentId = lastId(name.slice(0, name.lastIndexOf("/")));
      runs.push({ agentId, runId: metadata as string, turnNumber: Number(lastId(name)), turn: { name, version } });
    }
  }
  return runs;
}

/**
 * Returns what a commit has to do to remove runs with their events. Of many, all but the
 * last ones are removed before.
 */
export async function removal(documents: Documents, runs: ListedRun[]): Promise<{ changes: Change[]; prefixes: string[] }> {
  let from = 0;
  for (; runs.length - from > removedRuns; from += removedRuns) {
    const { changes, prefixes } = removed(runs.slice(from, from + removedRuns));
    await documents.commit(changes, prefixes);
  }
  return removed(runs.slice(from));
}

function removed(runs: ListedRun[]): { changes: Change[]; prefixes: string[] } {
  const changes = runs.flatMap(({ runId, turn }): Change[] => [
    { name: runName(runId), delete: true },
    { name: turn.name, expect: turn.version, delete: true },
  ]);
  return { changes, prefixes: runs.map(({ runId }) => eventsPrefix(runId)) };
}

function runName(runId: string): string {
  return named("runs", runId);
}

function turnName({ agentId, turnNumber }: { agentId: string; turnNumber: number }): string {
  if (!Number.isSafeInteger(turnNumber) || turnNumber < 0) {
    throw new RangeError(`turnNumber is ${turnNumber}, but must be a whole number and not negative`);
  }
  return named("turns", agentId, sortable(turnNumber));
}

function write(run: LocalAgentRunDocument, expect: string): Change {
  return { name: runName(run.runId), expect, set: { data: encode(run) } };
}

function writeTurn(run: LocalAgentRunDocument): Change {
  return { name: turnName(run), expect: "", set: { metadata: run.runId } };
}

/** A run as it is read again: absent fields are null. */
function complete(run: LocalAgentRunDocument): LocalAgentRunDocument {
  const given = decode(encode(run)) as LocalAgentRunDocument;
  return {
    requestId: null,
    model: null,
    result: null,
    error: null,
    usageRef: null,
    usage: null,
    startedAt: null,
    endedAt: null,
    startCheckpointRef: null,
    latestCheckpointRef: null,
    ...given,
  };
}

function byTurn(a: { turnNumber: number; runId: string }, b: { turnNumber: number; runId: string }): number {
  return compare(a.turnNumber, b.turnNumber) || compare(a.runId, b.runId);
}
