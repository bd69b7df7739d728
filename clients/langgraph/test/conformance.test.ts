// Runs the suite for checkpoint savers against the server at STET_URL, with the token in
// STET_TOKEN. All tests share the server: each thread has an id of its own, and "thread-1",
// which several tests use, is removed before each saver is handed out.
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";

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
