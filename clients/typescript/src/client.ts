import { createClient, type Client, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

import { Agents } from "./agents.js";
import { Blobs } from "./blobs.js";
import { BackgroundComposerService } from "./gen/aiserver/v1/stream_conversation_pb.js";
import { CheckpointService } from "./gen/stet/v1/checkpoint_service_pb.js";
import { CloudAgentService } from "./gen/stet/v1/cloudagent_service_pb.js";
import { ConversationService } from "./gen/stet/v1/conversation_service_pb.js";
import { BlobService, StoreService } from "./gen/stet/v1/store_service_pb.js";
import { DocumentService } from "./gen/stet/v1/document_service_pb.js";
import { ThreadService } from "./gen/stet/v1/thread_service_pb.js";
import { TransferService } from "./gen/stet/v1/transfer_service_pb.js";

export interface Options {
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch;
  /** Sends JSON instead of the binary form, for debugging. */
  json?: boolean;
}

/** A server. */
export interface Stet {
  /** Immutable bytes by their SHA-256. */
  readonly blobs: Blobs;
  /** Conversations: states, history, transcripts. */
  readonly conversations: Client<typeof ConversationService>;
  /** Checkpoints and rewinds of directories on the server's machine. */
  readonly checkpoints: Client<typeof CheckpointService>;
  /** Agents that run elsewhere, and their events. */
  readonly agents: Agents;
  /** What programs keep under names of their own, in collections. */
  readonly documents: Client<typeof DocumentService>;
  /** The states of graphs, for agent frameworks. */
  readonly threads: Client<typeof ThreadService>;
  /** Maintenance. */
  readonly store: Client<typeof StoreService>;
  /** Conversations with all that belongs to them, for other stores. Uploads need a transport
   * that streams requests, which `fetch` does not: create a client of the service in `gen/`. */
  readonly transfers: Client<typeof TransferService>;
}

/**
 * Uses the server at an address. The token goes into a header, never into the
 * address. It does not connect before the first call.
 */
export function connect(address: string, token: string, options: Options = {}): Stet {
  const url = new URL(address);
  if (url.username !== "" || url.password !== "" || url.search !== "") {
    throw new TypeError("the address must not contain a user or a query; do not put tokens there");
  }
  const bearer: Interceptor = (next) => (request) => {
    if (token !== "") {
      request.header.set("Authorization", `Bearer ${token}`);
    }
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: address.replace(/\/+$/, ""),
    interceptors: [bearer],
    useBinaryFormat: options.json !== true,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  });
  const blobs = new Blobs(createClient(BlobService, transport));
  return {
    blobs,
    conversations: createClient(ConversationService, transport),
    checkpoints: createClient(CheckpointService, transport),
    agents: new Agents(createClient(CloudAgentService, transport), createClient(BackgroundComposerService, transport), blobs),
    documents: createClient(DocumentService, transport),
    threads: createClient(ThreadService, transport),
    store: createClient(StoreService, transport),
    transfers: createClient(TransferService, transport),
  };
}
