import type { LocalAgentStore } from "@cursor/sdk";
import { connect, type Options, type Stet } from "@stet-dev/client";

import { Agents } from "./agents.js";
import { Checkpoints } from "./checkpoints.js";
import { Documents } from "./documents.js";
import { RunEvents } from "./events.js";
import { Runs } from "./runs.js";

export interface StoreOptions {
  /** The collection of documents, "cursor-sdk" unless it is given. Stores with different ones share nothing. */
  collection?: string;
}

/**
 * Agents, runs, their events and checkpoints in a collection of documents of a stet server.
 * It behaves as the store that the SDK opens by default, SqliteLocalAgentStore.
 */
export class StetLocalAgentStore implements LocalAgentStore {
  readonly agents: Agents;
  readonly checkpoints: Checkpoints;
  readonly runs: Runs;
  readonly runEvents: RunEvents;

  constructor(stet: Stet, options: StoreOptions = {}) {
    const documents = new Documents(stet, options.collection ?? "cursor-sdk");
    this.agents = new Agents(documents);
    this.checkpoints = new Checkpoints(documents);
    this.runs = new Runs(documents);
    this.runEvents = new RunEvents(documents);
  }

  /** Uses the server at an address. It does not connect before the first call. */
  static connect(address: string, token: string, options: Options & StoreOptions = {}): StetLocalAgentStore {
    return new StetLocalAgentStore(connect(address, token, options), options);
  }
}
