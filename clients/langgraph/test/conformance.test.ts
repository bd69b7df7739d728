// Runs the suite for checkpoint savers against the server at STET_URL, with the token in
// STET_TOKEN. All tests share the server: each thread has an id of its own, and "thread-1",
// which several tests use, is removed before each saver is handed out.
import type { RunnableConfig } from "@langchain/core/runnables";
import { emptyCheckpoint, type ChannelVersions, type Checkpoint } from "@langchain/langgraph-checkpoint";
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { expect, it } from "vitest";

import { StetSaver } from "../src/index.js";

const { STET_URL: address, STET_TOKEN: token } = process.env;
if (address === undefined || token === undefined) {
  throw new Error("STET_URL and STET_TOKEN say where the server is");
}

const initializer = {
  checkpointerName: "@stet-dev/langgraph",
  createCheckpointer: async (): Promise<StetSaver> => {
    const saver = StetSaver.connect(address, token);
    await emptied(saver);
    return saver;
  },
};

/** The suite lists all threads, so a saver begins with none. */
async function emptied(saver: StetSaver): Promise<void> {
  const threads = new Set<string>();
  for await (const { config } of saver.list({ configurable: {} })) {
    threads.add(config.configurable?.thread_id);
  }
  await saver.prune([...threads], "delete");
}

validate(initializer);
deltaChannelHistoryTests(initializer);

// LangGraph copies a checkpoint with no new versions and the parent of its source.
it("a copy of a checkpoint has all values", async () => {
  const saver = StetSaver.connect(address, token);
  const thread = { configurable: { thread_id: "copied", checkpoint_ns: "" } };
  const made = (id: string, a: number): Checkpoint => ({
    ...emptyCheckpoint(), id, channel_values: { a, b: 1 }, channel_versions: { a, b: 1 },
  });
  const loop = { source: "loop", step: 0, parents: {} } as const;
  const first = await saver.put(thread, made("1", 1), loop, { a: 1, b: 1 });
  await saver.put(first, made("2", 2), loop, { a: 2 });
  for (const [id, parent] of [["3", first], ["4", thread]] as const) {
    const copy = await saver.put(parent, made(id, 2), { ...loop, source: "fork" }, {});
    expect((await saver.getTuple(copy))?.checkpoint.channel_values).toEqual({ a: 2, b: 1 });
  }
});

it("a value may be larger than a message", async () => {
  const saver = StetSaver.connect(address, token);
  const large = "0123456789".repeat(500_000);
  const checkpoint: Checkpoint = { ...emptyCheckpoint(), id: "1", channel_values: { large, small: 1 }, channel_versions: { large: 1, small: 1 } };
  const put = await saver.put({ configurable: { thread_id: "large", checkpoint_ns: "" } }, checkpoint, { source: "loop", step: 0, parents: {} }, { large: 1, small: 1 });
  await saver.putWrites(put, [["large", large]], "task");
  const tuple = await saver.getTuple(put);
  expect(tuple?.checkpoint.channel_values).toEqual({ large, small: 1 });
  expect(tuple?.pendingWrites).toEqual([["task", "large", large]]);
});

it("versions come back as they were, with a value and without one", async () => {
  const saver = StetSaver.connect(address, token);
  let config: RunnableConfig = { configurable: { thread_id: "versions", checkpoint_ns: "" } };
  const metadata = { source: "loop", step: 0, parents: {} } as const;
  const put = async (id: string, values: Record<string, unknown>, versions: ChannelVersions, newVersions: ChannelVersions) => {
    const made: Checkpoint = { ...emptyCheckpoint(), id, channel_values: values, channel_versions: versions };
    config = await saver.put(config, made, metadata, newVersions);
    expect((await saver.getTuple(config))?.checkpoint).toEqual(made);
  };
  await put("1", { number: 1, text: 1 }, { number: 1, text: "1", empty: 3 }, { number: 1, text: "1", empty: 3 });
  await put("2", { number: 2, text: 1 }, { number: 2, text: "1", empty: 3 }, { number: 2 });
  await put("3", {}, {}, {});
  // The frame has another version than the checkpoint, and one that the checkpoint lacks.
  await put("4", { number: 3, text: 2 }, { number: 3 }, { number: 4, text: "2" });
});
