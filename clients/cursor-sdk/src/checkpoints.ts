import type { LocalAgentCheckpointFilter, LocalAgentStoreCheckpoints, LocalAgentStoreListResult } from "@cursor/sdk";
import { changeDocuments } from "@stet-dev/client";

import { isConflict, lastId, named, type Documents } from "./documents.js";
import { compare, lets, page } from "./paging.js";

interface Blob {
  readonly agentId: string;
  readonly blobId: string;
  readonly data: Uint8Array;
}

/** The number of blobs that are deleted in one commit. */
const deletedBlobs = 1000;

/** The blobs of checkpoints, one document each. The server keeps equal bytes once. */
export class Checkpoints implements LocalAgentStoreCheckpoints {
  constructor(private readonly documents: Documents) {}

  async get({ agentId, blobId }: { agentId: string; blobId: string }): Promise<Uint8Array | null> {
    const [stored] = await this.documents.get(named("checkpoints", agentId, blobId));
    return stored?.data ?? null;
  }

  async create({ agentId, blobId, data }: Blob): Promise<void> {
    try {
      await this.documents.commit([{ name: named("checkpoints", agentId, blobId), expect: "", set: { data } }]);
    } catch (error) {
      throw isConflict(error) ? new Error(`Checkpoint blob ${blobId} already exists for agent ${agentId}`) : error;
    }
  }

  update({ agentId, blobId, data }: Blob): Promise<void> {
    return changeDocuments(async () => {
      const entry = await this.documents.entry(named("checkpoints", agentId, blobId));
      if (entry === undefined) {
        throw new Error(`Checkpoint blob ${blobId} not found for agent ${agentId}`);
      }
      await this.documents.commit([{ name: entry.name, expect: entry.version, set: { data } }]);
    });
  }

  async delete({ filter }: { filter: LocalAgentCheckpointFilter }): Promise<void> {
    if (filter.blobIds === undefined || filter.blobIds.length === 0) {
      return this.documents.deleteAll(prefixes(filter));
    }
    const names = await this.matching(filter);
    for (let from = 0; from < names.length; from += deletedBlobs) {
      await this.documents.commit(names.slice(from, from + deletedBlobs).map((name) => ({ name, delete: true })));
    }
  }

  /** Lists ids of blobs. An id that several agents have is there several times. */
  async list({ filter = {} }: { filter?: LocalAgentCheckpointFilter } = {}): Promise<LocalAgentStoreListResult<string>> {
    const { cursor = "", limit } = filter;
    const ids = (await this.matching(filter)).map(lastId).sort(compare);
    const { rows: items, last } = page(cursor === "" ? ids : ids.filter((id) => id > cursor), limit);
    return last === undefined ? { items } : { items, nextCursor: last };
  }

  private async matching(filter: LocalAgentCheckpointFilter): Promise<string[]> {
    const names: string[] = [];
    for (const prefix of prefixes(filter)) {
      for await (const { name } of this.documents.entries(prefix)) {
        if (lets(filter.blobIds, lastId(name))) {
          names.push(name);
        }
      }
    }
    return names;
  }
}

/** What the names of the blobs of the agents of a filter begin with. */
function prefixes({ agentIds = [] }: LocalAgentCheckpointFilter): string[] {
  return agentIds.length === 0 ? [named("checkpoints", "")] : [...new Set(agentIds)].map((id) => named("checkpoints", id, ""));
}
