// Writes to a server that is killed meanwhile, and checks what it has after it was started again.
//
//   node kill.js load   appends events and checkpoints, prints each round that returned, and ends when the server does
//   node kill.js check  reads these lines, and fails if something is missing or there twice
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";

import { ours } from "./server.js";

const workers = [0, 1, 2, 3];
const store = ours("kill");
const data = (worker: number, n: number): Uint8Array => new TextEncoder().encode(`checkpoint ${n} of worker ${worker}`);

// Half of the events have an idempotency key, so that they may be repeated.
const event = (worker: number, n: number) => ({
  runId: `run-${worker}`,
  eventType: "text",
  payload: `event ${n}`,
  ...(n % 2 === 0 ? {} : { idempotencyKey: `key ${n}` }),
});

async function load(worker: number): Promise<void> {
  for (let n = 0; ; n++) {
    try {
      await store.checkpoints.create({ agentId: `agent-${worker}`, blobId: String(n), data: data(worker, n) });
      await store.runEvents.append(event(worker, n));
    } catch {
      return;
    }
    console.log(`${worker} ${n}`);
  }
}

async function check(worker: number, returned: number): Promise<void> {
  const list = async () => (await store.runEvents.list({ runId: `run-${worker}`, limit: 10_000 })).items;
  const found = await list();
  // The one that was interrupted may be there.
  assert.ok(found.length === returned || found.length === returned + 1, `worker ${worker}: ${returned} returned, ${found.length} are there`);
  assert.deepEqual(found.map(({ seq, payload }) => [seq, payload]), found.map((_, n) => [n + 1, `event ${n}`]));
  for (let n = 0; n < found.length; n++) {
    assert.deepEqual(await store.checkpoints.get({ agentId: `agent-${worker}`, blobId: String(n) }), data(worker, n));
    if (n % 2 === 1) {
      assert.equal((await store.runEvents.append(event(worker, n))).seq, n + 1);
    }
  }
  assert.deepEqual(await list(), found);
}

if (process.argv[2] === "load") {
  await Promise.all(workers.map(load));
} else {
  const lines = (await text(process.stdin)).split("\n");
  await Promise.all(workers.map((worker) => check(worker, lines.filter((line) => line.startsWith(`${worker} `)).length)));
}
