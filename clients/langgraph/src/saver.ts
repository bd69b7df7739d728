import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  TASKS,
  WRITES_IDX_MAP,
  getCheckpointId,
  maxChannelVersion,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { Code, ConnectError, connect, type Options, type Stet } from "@stet-dev/client";
import type { Frame, FrameValue } from "@stet-dev/client/gen/stet/v1/thread_service_pb";

/**
 * What the values of one call may have inside its message, of which the server accepts
 * 4 MiB; the others are put as blobs. Those are kept whole: only in the call the server
 * knows which earlier value they are like.
 */
const messageBytes = 3 << 20;

/** A value as the service takes it. */
type Value = { type: string; content: { case: "data" | "blob"; value: Uint8Array } };

/** Keeps checkpoints in the threads of a stet server. */
export class StetSaver extends BaseCheckpointSaver {
  constructor(
    private readonly stet: Stet,
    serde?: SerializerProtocol,
  ) {
    super(serde);
  }

  /** Uses the server at an address. It does not connect before the first call. */
  static connect(address: string, token: string, options?: Options): StetSaver {
    return new StetSaver(connect(address, token, options));
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const thread = config.configurable?.thread_id;
    if (thread === undefined) {
      return undefined;
    }
    const namespace = config.configurable?.checkpoint_ns ?? "";
    const frame = await this.frame(text("thread_id", thread), namespace, getCheckpointId(config));
    return frame === undefined ? undefined : this.tuple(frame);
  }

  async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    const { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: only } = config.configurable ?? {};
    let left = options?.limit ?? Infinity;
    let cursor = "";
    while (left > 0) {
      const page = await this.stet.threads.list({
        thread: thread === undefined ? "" : text("thread_id", thread),
        ...(namespace === undefined ? {} : { namespace }),
        before: options?.before === undefined ? "" : getCheckpointId(options.before),
        filter: encode(options?.filter ?? {}),
        page: { cursor, limit: Math.min(left, 100) },
      });
      const damaged = page.damaged[0];
      if (damaged !== undefined) {
        throw new Error(`checkpoint ${damaged.id} is damaged: ${damaged.detail}`);
      }
      for (const frame of page.frames) {
        if (only === undefined || frame.key?.id === only) {
          left -= 1;
          yield await this.tuple(frame);
        }
      }
      cursor = page.nextCursor;
      if (cursor === "") {
        return;
      }
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread, namespace } = where(config, "put a checkpoint");
    const { channel_values: channelValues, ...body } = checkpoint;
    const room = { bytes: messageBytes };
    const values: Record<string, Value> = {};
    // A copy of a checkpoint has no new versions, and its parent is that of its source: the
    // values that the source changed are in neither.
    const copied = metadata.source === "fork" ? checkpoint.channel_versions : {};
    for (const channel of Object.keys({ ...copied, ...newVersions })) {
      if (Object.hasOwn(channelValues, channel)) {
        values[channel] = await this.value(channelValues[channel], room);
      }
    }
    await this.stet.threads.put({
      key: { thread, namespace, id: checkpoint.id },
      parent: getCheckpointId(config),
      metadata: encode(metadata),
      body: await this.value(shortened(body, newVersions, values), room),
      versions: versions({ ...checkpoint.channel_versions, ...newVersions }),
      values,
    });
    return { configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: checkpoint.id } };
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread, namespace } = where(config, "put writes");
    const id = getCheckpointId(config);
    if (id === "") {
      throw new Error('cannot put writes: "checkpoint_id" is missing in "configurable"');
    }
    const room = { bytes: messageBytes };
    await this.stet.threads.putWrites({
      key: { thread, namespace, id },
      task: taskId,
      writes: await Promise.all(
        writes.map(async ([channel, value], index) => ({
          index: WRITES_IDX_MAP[channel] ?? index,
          channel,
          value: await this.value(value, room),
        })),
      ),
    });
  }

  async deleteThread(threadId: string): Promise<void> {
    await this.stet.threads.delete({ thread: threadId });
  }

  /** Copies all checkpoints and writes of a thread to another one. */
  async copyThread(sourceThreadId: string, targetThreadId: string): Promise<void> {
    await this.stet.threads.copy({ from: sourceThreadId, to: targetThreadId });
  }

  /** Removes the checkpoints that runs made, by the `run_id` of their metadata. */
  async deleteForRuns(runIds: string[]): Promise<void> {
    await this.stet.threads.deleteRuns({ runs: runIds });
  }

  /** Removes all checkpoints of threads but the latest of each namespace, or all of them. */
  async prune(threadIds: string[], strategy: "keep_latest" | "delete" = "keep_latest"): Promise<void> {
    if (strategy === "delete") {
      await Promise.all(threadIds.map((id) => this.deleteThread(id)));
      return;
    }
    await this.stet.threads.prune({ threads: threadIds });
  }

  /** Returns a frame, the latest without an id, or undefined if there is none. */
  private async frame(thread: string, namespace: string, id: string): Promise<Frame | undefined> {
    try {
      return (await this.stet.threads.get({ key: { thread, namespace, id } })).frame;
    } catch (error) {
      if (error instanceof ConnectError && error.code === Code.NotFound) {
        return undefined;
      }
      throw error;
    }
  }

  private async tuple(frame: Frame): Promise<CheckpointTuple> {
    const { thread: thread_id, namespace: checkpoint_ns, id: checkpoint_id } = frame.key!;
    const body = restored((await this.load(frame.body)) as Partial<Body>, frame);
    const channels = await Promise.all(
      Object.entries(frame.channels).map(async ([name, channel]) => [name, await this.load(channel.value)] as const),
    );
    const checkpoint: Checkpoint = { ...body, channel_values: Object.fromEntries(channels) };
    if (checkpoint.v < 4 && frame.parent !== "") {
      await this.migratePendingSends(checkpoint, thread_id, checkpoint_ns, frame.parent);
    }
    const tuple: CheckpointTuple = {
      config: { configurable: { thread_id, checkpoint_ns, checkpoint_id } },
      checkpoint,
      metadata: JSON.parse(new TextDecoder().decode(frame.metadata)) as CheckpointMetadata,
      pendingWrites: await this.writes(frame),
    };
    if (frame.parent !== "") {
      tuple.parentConfig = { configurable: { thread_id, checkpoint_ns, checkpoint_id: frame.parent } };
    }
    return tuple;
  }

  private writes(frame: Frame): Promise<CheckpointPendingWrite[]> {
    return Promise.all(
      frame.writes.map(async (w): Promise<CheckpointPendingWrite> => [w.task, w.channel, await this.load(w.value)]),
    );
  }

  /** Checkpoints before version 4 kept what is sent to tasks as writes of their parent. */
  private async migratePendingSends(checkpoint: Checkpoint, thread: string, namespace: string, parent: string): Promise<void> {
    const frame = await this.frame(thread, namespace, parent);
    const sends = frame === undefined ? [] : (await this.writes(frame)).filter(([, channel]) => channel === TASKS);
    checkpoint.channel_values[TASKS] = sends.map(([, , value]) => value);
    const known = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] = known.length > 0 ? maxChannelVersion(...known) : this.getNextVersion(undefined);
  }

  /**
   * Serialises a value. What does not fit into the room of the call is put as a blob, which
   * is durable with the checkpoint.
   */
  private async value(data: unknown, room: { bytes: number }): Promise<Value> {
    const [type, bytes] = await this.serde.dumpsTyped(data);
    if (bytes.length <= room.bytes) {
      room.bytes -= bytes.length;
      return { type, content: { case: "data", value: bytes } };
    }
    return { type, content: { case: "blob", value: await this.stet.blobs.put(bytes) } };
  }

  private async load(value: FrameValue | undefined): Promise<unknown> {
    if (value?.content.case === undefined) {
      throw new Error("the server returned a value without content");
    }
    const { content } = value;
    const data = content.case === "blob" ? await this.stet.blobs.get(content.value) : content.value;
    return this.serde.loadsTyped(value.type, data);
  }
}

/** Returns thread and namespace of a config, or says what is missing. */
function where(config: RunnableConfig, action: string): { thread: string; namespace: string } {
  const thread = config.configurable?.thread_id;
  if (thread === undefined) {
    throw new Error(`cannot ${action}: "thread_id" is missing in "configurable"; pass { configurable: { thread_id: … } }`);
  }
  return { thread: text("thread_id", thread), namespace: config.configurable?.checkpoint_ns ?? "" };
}

function text(name: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`"${name}" must be a text that is not empty`);
  }
  return value;
}

/** Versions of channels as texts; numbers and texts stay different. */
/** A checkpoint without the values of its channels. */
type Body = Omit<Checkpoint, "channel_values">;

/**
 * Leaves out of a body what the frame itself has: the id, and the versions of channels whose
 * values come with it.
 */
function shortened(body: Body, newVersions: ChannelVersions, values: Record<string, Value>): Partial<Body> {
  const { id: _, channel_versions: all, ...rest } = body;
  if (Object.keys(values).some((name) => !Object.hasOwn(all, name) || (newVersions[name] ?? all[name]) !== all[name])) {
    return body; // the frame has other versions than the checkpoint
  }
  const left = Object.entries(all).filter(([name]) => !Object.hasOwn(values, name));
  return left.length === 0 ? rest : { ...rest, channel_versions: Object.fromEntries(left) };
}

/** Puts back what was left out of the body of a frame. */
function restored(body: Partial<Body>, frame: Frame): Body {
  if (body.id !== undefined) {
    return body as Body;
  }
  const all: ChannelVersions = { ...body.channel_versions };
  for (const [name, { version }] of Object.entries(frame.channels)) {
    all[name] ??= JSON.parse(version) as ChannelVersions[string];
  }
  return { ...body, id: frame.key!.id, channel_versions: all } as Body;
}

function versions(all: ChannelVersions): Record<string, string> {
  return Object.fromEntries(Object.entries(all).map(([name, version]) => [name, JSON.stringify(version)]));
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
