import type { LocalAgentAgentFilter, LocalAgentDocument, LocalAgentListFilter, LocalAgentStoreAgents, LocalAgentStoreListResult } from "@cursor/sdk";
import { changeDocuments } from "@stet-dev/client";

import { decode, encode, isConflict, lastId, named, type Change, type Documents, type Entry } from "./documents.js";
import { compare, fromCursor, lets, page, toCursor } from "./paging.js";
import { isActive, removal, runsOf } from "./runs.js";

/** What is listed of an agent without reading it. */
interface Listed {
  agentId: string;
  cwd: string;
  updatedAt: number;
}

/** Agents, one document each. */
export class Agents implements LocalAgentStoreAgents {
  constructor(private readonly documents: Documents) {}

  async get({ agentId }: { agentId: string }): Promise<LocalAgentDocument | null> {
    const [stored] = await this.documents.get(agentName(agentId));
    return stored === undefined ? null : (decode(stored.data) as LocalAgentDocument);
  }

  async create({ agent }: { agent: LocalAgentDocument }): Promise<LocalAgentDocument> {
    const full = complete(agent);
    try {
      await this.documents.commit([write(full, "")]);
    } catch (error) {
      throw isConflict(error) ? new Error(`Agent ${agent.agentId} already exists`) : error;
    }
    return full;
  }

  /** Replaces an agent, but for the time of its creation. */
  update({ agent }: { agent: LocalAgentDocument }): Promise<LocalAgentDocument> {
    return changeDocuments(async () => {
      const [stored] = await this.documents.get(agentName(agent.agentId));
      if (stored === undefined) {
        throw new Error(`Agent ${agent.agentId} not found`);
      }
      const { createdAt } = decode(stored.data) as LocalAgentDocument;
      const full = complete({ ...agent, createdAt });
      await this.documents.commit([write(full, stored.version)]);
      return full;
    });
  }

  /** Deletes agents with their runs, events and checkpoints, up to one whose active run has not ended. */
  async delete({ filter }: { filter: LocalAgentAgentFilter }): Promise<void> {
    const matching = await this.matching(filter);
    if (matching.length === 0) {
      throw new Error("No agents matched delete filter");
    }
    for (const { agentId } of matching) {
      await changeDocuments(() => this.remove(agentId, filter));
    }
  }

  async list({ filter = {} }: { filter?: LocalAgentListFilter } = {}): Promise<LocalAgentStoreListResult<LocalAgentDocument>> {
    const { cwd, cursor, limit } = filter;
    const from = fromCursor(cursor, { updatedAt: 0, agentId: "" }, "agent");
    const listed = (await this.matching(cwd === undefined ? {} : { cwd })).sort(latestFirst);
    const { rows, last } = page(from === undefined ? listed : listed.filter((agent) => latestFirst(agent, from) > 0), limit);
    const found = await this.documents.get(...rows.map(({ agentId }) => agentName(agentId)));
    const items = found.flatMap((stored) => (stored === undefined ? [] : [decode(stored.data) as LocalAgentDocument]));
    return last === undefined ? { items } : { items, nextCursor: toCursor({ updatedAt: last.updatedAt, agentId: last.agentId }) };
  }

  private async matching(filter: LocalAgentAgentFilter): Promise<Listed[]> {
    const all: Listed[] = [];
    for await (const entry of this.documents.entries(named("agents", ""))) {
      all.push(listed(entry));
    }
    return all.filter((agent) => matches(agent, filter));
  }

  /**
   * Removes an agent with all it has in one commit; many runs are removed before. The commit
   * fails if the agent was changed, or got a run, after it was read.
   */
  private async remove(agentId: string, filter: LocalAgentAgentFilter): Promise<void> {
    const [agent] = await this.documents.get(agentName(agentId));
    if (agent === undefined || !matches(listed(agent), filter)) {
      return;
    }
    const { activeRunId } = decode(agent.data) as LocalAgentDocument;
    if (typeof activeRunId === "string" && (await isActive(this.documents, agentId, activeRunId))) {
      throw new Error(`Cannot delete agent ${agentId}: active run ${activeRunId} is not terminal. Call run.cancel() first.`);
    }
    const runs = await runsOf(this.documents, [agentId]);
    const { changes, prefixes } = await removal(this.documents, runs);
    await this.documents.commit(
      [...changes, { name: agent.name, expect: agent.version, delete: true }],
      [...prefixes, named("checkpoints", agentId, "")],
    );
  }
}

export function agentName(agentId: string): string {
  return named("agents", agentId);
}

/** Creating a run writes its agent again: a deletion that did not see the run fails then. */
export async function touched(documents: Documents, agentId: string): Promise<Change> {
  const [stored] = await documents.get(agentName(agentId));
  if (stored === undefined) {
    throw new Error(`Agent ${agentId} not found`);
  }
  return { name: stored.name, expect: stored.version, set: { data: stored.data, metadata: stored.metadata } };
}

function write(agent: LocalAgentDocument, expect: string): Change {
  const { agentId, cwd, updatedAt } = agent;
  return { name: agentName(agentId), expect, set: { data: encode(agent), metadata: { cwd, updatedAt } } };
}

/** An agent as it is read again: absent fields are null. */
function complete(agent: LocalAgentDocument): LocalAgentDocument {
  const given = decode(encode(agent)) as LocalAgentDocument;
  return { activeRunId: null, name: null, latestCheckpoint: null, sdkMetadata: {}, ...given };
}

function matches(agent: Listed, { agentIds, cwd }: LocalAgentAgentFilter): boolean {
  return lets(agentIds, agent.agentId) && (cwd === undefined || agent.cwd === cwd);
}

function listed({ name, metadata }: Entry): Listed {
  return { agentId: lastId(name), ...(metadata as { cwd: string; updatedAt: number }) };
}

function latestFirst(a: Omit<Listed, "cwd">, b: Omit<Listed, "cwd">): number {
  return compare(b.updatedAt, a.updatedAt) || compare(b.agentId, a.agentId);
}
