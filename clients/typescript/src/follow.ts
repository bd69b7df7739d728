import { create, fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Client } from "@connectrpc/connect";

import type { InteractionUpdate } from "./gen/agent/v1/interaction_update_pb.js";
import { CloudAgentStateSchema, CloudAgentWorkflowStatus, type CloudAgentState } from "./gen/aiserver/v1/cloud_agent_pb.js";
import type {
  BackgroundComposerService,
  PreFetchedBlob,
  StreamConversationResponse,
} from "./gen/aiserver/v1/stream_conversation_pb.js";

export interface FollowOptions {
  /** The last handled offset; without one the initial state comes first. */
  after?: string;
  /** Ends the following with an error. */
  signal?: AbortSignal;
  /** Omits the contents of large tool calls and large blobs. */
  light?: boolean;
  /** Limits of the wait before a new connection, 100 ms and 10 s. */
  minBackoff?: number;
  maxBackoff?: number;
  /** How long a connection may be silent, in ms, before it counts as lost: a minute. */
  silence?: number;
}

/** An event of an agent. `offset` is the place after it, to resume from. */
export type AgentEvent =
  /** The follower starts over: the state includes everything before the offset. */
  | { kind: "initial"; offset: string; status: CloudAgentWorkflowStatus; state?: CloudAgentState; stateId?: Uint8Array; blobs: PreFetchedBlob[] }
  | { kind: "update"; offset: string; update: InteractionUpdate }
  | { kind: "state"; offset: string; state: CloudAgentState; stateId: Uint8Array; blobs: PreFetchedBlob[] }
  | { kind: "status"; offset: string; status: CloudAgentWorkflowStatus }
  /** A response that this release does not interpret. */
  | { kind: "other"; offset: string; response: StreamConversationResponse };

/** A stream keeps skipping an event. */
export class DataLossError extends Error {
  override readonly name = "DataLossError";
}

/** How many consecutive connections may skip the same event. */
const maxGaps = 3;

/** Errors that a later retry does not fix. */
const permanent = new Set([
  Code.NotFound, Code.InvalidArgument, Code.DataLoss, Code.Unauthenticated, Code.PermissionDenied,
  Code.Unimplemented, Code.FailedPrecondition,
]);

export async function* follow(
  service: Client<typeof BackgroundComposerService>,
  id: string,
  options: FollowOptions,
  blob: (id: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>,
): AsyncGenerator<AgentEvent, void, void> {
  const place = new Place(options.after ?? "");
  const shortest = options.minBackoff ?? 100;
  const longest = Math.max(options.maxBackoff ?? 10_000, shortest);
  let wait = shortest;
  for (;;) {
    options.signal?.throwIfAborted();
    const line = new Line(options);
    let ended = false;
    let progress = false;
    try {
      const request = {
        bcId: id,
        ...(place.after === "" ? {} : { offsetKey: place.after }),
        ...(options.light === undefined ? {} : { filterHeavyStepData: options.light }),
      };
      place.begin();
      for await (const response of service.streamConversation(request, { signal: line.signal })) {
        line.heard();
        const before = place.after;
        for (const event of place.take(response)) {
          progress = true;
          line.rest(); // the time that the caller takes is not the connection's
          if ((event.kind === "initial" || event.kind === "state") && event.state !== undefined && leftOut.has(event.state)) {
            event.state = await place.fetched(before, () => blob(event.stateId!, line.signal));
          }
          yield event;
          line.heard();
        }
        if (place.ended) {
          return;
        }
      }
      ended = true; // an initial state without its offset comes again
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof DataLossError || (error instanceof ConnectError && permanent.has(error.code))) {
        throw error;
      }
      // Anything else is a connection error.
    } finally {
      line.close();
    }
    if (ended && place.terminal && progress) {
      // Either the agent has ended or the server is stopping. Only the answer to a new
      // connection says which; there is no load to spread yet.
      continue;
    }
    if (progress) {
      wait = shortest;
    }
    // Half of the wait is random, so that followers of a restarted server do not all
    // reconnect at once.
    await pause(wait / 2 + (Math.random() * wait) / 2, options.signal);
    wait = Math.min(2 * wait, longest);
  }
}

/** Stand for states that are too large for the stream, until they are fetched. */
const leftOut = new WeakSet<CloudAgentState>();

function stateOf(state: CloudAgentState | undefined, id: Uint8Array): CloudAgentState | undefined {
  if (state !== undefined || id.length === 0) {
    return state;
  }
  const placeholder = create(CloudAgentStateSchema);
  leftOut.add(placeholder);
  return placeholder;
}

/** The position of a follower: decides which responses are events, and yields each once. */
class Place {
  /** The last status was final. */
  terminal = false;
  /** The server reported that nothing follows the offset. */
  ended = false;
  /** The connection resumed after an offset and nothing has come yet. */
  private resumed = false;
  private pending: (AgentEvent & { kind: "initial" }) | undefined;
  private prefetched: PreFetchedBlob[] = [];
  private gaps = 0;

  constructor(public after: string) {}

  /** Drops the unfinished state of a lost connection. */
  begin(): void {
    this.pending = undefined;
    this.prefetched = [];
    this.resumed = this.after !== "";
  }

  /** Returns a state that was left out. If it cannot be fetched now, its event comes again. */
  async fetched(before: string, fetch: () => Promise<Uint8Array>): Promise<CloudAgentState> {
    try {
      return fromBinary(CloudAgentStateSchema, await fetch());
    } catch (error) {
      this.after = before;
      throw error;
    }
  }

  *take(response: StreamConversationResponse): Generator<AgentEvent, void, void> {
    const { message } = response;
    const first = this.resumed;
    this.resumed = false;
    switch (message.case) {
      case "initialState": {
        const { workflowStatus: status, cloudAgentState, blobId, preFetchedBlobs } = message.value;
        const state = stateOf(cloudAgentState, blobId);
        // Held back until its offset is known: a connection lost in between must not make
        // the caller start over twice.
        this.pending = {
          kind: "initial", offset: "", status, blobs: [...this.prefetched, ...preFetchedBlobs],
          ...(state === undefined ? {} : { state, stateId: blobId }),
        };
        return;
      }
      case "prefetchedBlobs":
        this.prefetched.push(...message.value.preFetchedBlobs);
        return;
      case "streamSignal":
        return;
      case "workflowStatusWithOffset": {
        const { offsetKey: offset, workflowStatus: status } = message.value;
        if (this.pending !== undefined && this.pending.status === status) {
          yield* this.givePending(offset);
          return;
        }
        if (first && offset === this.after) {
          // Sent only by a server whose log ends at this offset.
          this.terminal = this.ended = isTerminal(status);
          return;
        }
        yield* this.give({ kind: "status", offset, status });
        return;
      }
      case "interactionUpdateWithOffset": {
        const { offsetKey: offset, interactionUpdate: update } = message.value;
        if (update !== undefined) {
          yield* this.give({ kind: "update", offset, update });
        }
        return;
      }
      case "cloudAgentStateWithIdAndOffset": {
        const { offsetKey: offset, cloudAgentState, blobId: stateId, preFetchedBlobs: blobs } = message.value;
        const state = stateOf(cloudAgentState, stateId);
        if (state !== undefined) {
          yield* this.give({ kind: "state", offset, state, stateId, blobs });
        }
        return;
      }
      default: {
        const value: unknown = message.value;
        const offset = typeof value === "object" && value !== null && "offsetKey" in value ? String(value.offsetKey) : "";
        yield* this.give({ kind: "other", offset, response });
      }
    }
  }

  /** Yields the initial state that was held back. */
  private *givePending(offset: string): Generator<AgentEvent, void, void> {
    const initial = this.pending;
    if (initial === undefined) {
      return;
    }
    this.pending = undefined;
    this.after = offset;
    this.terminal = isTerminal(initial.status);
    yield { ...initial, offset };
  }

  /** Yields an event if it is the next one. */
  private *give(event: AgentEvent): Generator<AgentEvent, void, void> {
    yield* this.givePending("");
    if (event.offset !== "" && this.after !== "") {
      if (event.offset === this.after) {
        return; // a heartbeat, or said twice
      }
      const last = sequence(this.after);
      const at = sequence(event.offset);
      if (last !== undefined && at !== undefined) {
        if (at <= last) {
          return;
        }
        if (at > last + 1n) {
          this.gaps++;
          const text = `the stream goes from event ${last} to ${at}`;
          throw this.gaps >= maxGaps ? new DataLossError(text) : new Error(text);
        }
      }
    }
    this.gaps = 0;
    if (event.offset !== "") {
      this.after = event.offset;
    }
    if (event.kind === "status") {
      this.terminal = isTerminal(event.status);
    }
    yield event;
  }
}

/** One connection, which is closed after too long a silence. */
class Line {
  private readonly controller = new AbortController();
  private readonly silence: number;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly abort = () => this.controller.abort();

  constructor(private readonly options: FollowOptions) {
    this.silence = options.silence ?? 60_000;
    options.signal?.addEventListener("abort", this.abort);
    this.heard();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  heard(): void {
    this.rest();
    this.timer = setTimeout(this.abort, this.silence);
  }

  rest(): void {
    clearTimeout(this.timer);
  }

  close(): void {
    this.rest();
    this.options.signal?.removeEventListener("abort", this.abort);
    this.controller.abort();
  }
}

function isTerminal(status: CloudAgentWorkflowStatus): boolean {
  return status === CloudAgentWorkflowStatus.ARCHIVED || status === CloudAgentWorkflowStatus.EXPIRED;
}

/** Returns the event number of an offset; other servers format offsets differently. */
function sequence(offset: string): bigint | undefined {
  const parts = /^([0-9a-f]{16})-[0-9a-f]{1,16}$/.exec(offset);
  return parts?.[1] === undefined ? undefined : BigInt(`0x${parts[1]}`);
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop(): void {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}
