import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";

import type { Blobs } from "./blobs.js";
import { follow, type AgentEvent, type FollowOptions } from "./follow.js";
import type { InteractionUpdateSchema } from "./gen/agent/v1/interaction_update_pb.js";
import type { CloudAgentStateSchema, CloudAgentWorkflowStatus } from "./gen/aiserver/v1/cloud_agent_pb.js";
import type { BackgroundComposerService, PreFetchedBlobSchema } from "./gen/aiserver/v1/stream_conversation_pb.js";
import type { Agent, CloudAgentService } from "./gen/stet/v1/cloudagent_service_pb.js";

/** Agents that run elsewhere: their state, their status and a log of their events. */
export class Agents {
  constructor(
    private readonly service: Client<typeof CloudAgentService>,
    private readonly streams: Client<typeof BackgroundComposerService>,
    private readonly blobs: Blobs,
  ) {}

  /** Creates an agent; without an id the server chooses one. */
  async create(agent: { id?: string; name?: string; conversation?: string }): Promise<Agent> {
    return made((await this.service.create(agent)).agent);
  }

  async get(id: string): Promise<Agent> {
    return made((await this.service.get({ id })).agent);
  }

  /** Yields all agents, a page at a time. */
  async *list(): AsyncGenerator<Agent, void, void> {
    let cursor = "";
    do {
      const page = await this.service.list({ page: { cursor } });
      yield* page.agents;
      cursor = page.nextCursor;
    } while (cursor !== "");
  }

  /**
   * Adds updates to the log, all or none, and returns the offset of the last. With
   * a key, an append whose answer was lost can be repeated: it is added once.
   */
  async append(id: string, updates: MessageInitShape<typeof InteractionUpdateSchema>[], key = ""): Promise<string> {
    return (await this.service.appendUpdate({ id, updates, idempotencyKey: key })).offsetKey;
  }

  /** Stores a state with its blobs, its offset and its event together. */
  async saveState(
    id: string,
    state: MessageInitShape<typeof CloudAgentStateSchema>,
    blobs: MessageInitShape<typeof PreFetchedBlobSchema>[] = [],
  ): Promise<{ stateId: Uint8Array; offset: string }> {
    const saved = await this.service.saveState({ id, state, blobs });
    return { stateId: saved.blobId, offset: saved.offsetKey };
  }

  async setStatus(id: string, status: CloudAgentWorkflowStatus): Promise<string> {
    return (await this.service.setStatus({ id, status })).offsetKey;
  }

  /** Ends an agent: its followers end after the last event. */
  async archive(id: string): Promise<void> {
    await this.service.archive({ id });
  }

  /**
   * Yields the events of an agent, each once and in order, over as many connections
   * as needed, until the agent has ended. The end of a connection is never taken for the
   * end of the log. It throws errors that a new connection
   * cannot fix, and when the signal of the options is aborted.
   */
  follow(id: string, options: FollowOptions = {}): AsyncGenerator<AgentEvent, void, void> {
    return follow(this.streams, id, options, (blob, signal) => this.blobs.get(blob, signal));
  }
}

function made(agent: Agent | undefined): Agent {
  if (agent === undefined) {
    throw new Error("the server returned no agent");
  }
  return agent;
}
