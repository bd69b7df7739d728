// Writes to a server that is killed meanwhile, and checks what it has after it was started again.
//
//   node kill.js load   appends, prints each append that returned, and ends when the server does
//   node kill.js check  reads these lines, and fails if an append is missing or there twice
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";

import { newStore } from "./server.js";

const store = newStore("kill");
const key = (worker: number) => ({ projectKey: "project", sessionId: `session-${worker}` });
const workers = [0, 1, 2, 3];

async function load(worker: number): Promise<void> {
  for (let n = 0; ; n++) {
    try {
      await store.append(key(worker), [{ type: "a", n }, { type: "b", n }]);
    } catch {
      return;
    }
    console.log(`${worker} ${n}`);
  }
}

async function check(worker: number, returned: number): Promise<void> {
  const entries = (await store.load(key(worker))) ?? [];
  const appends = entries.length / 2;
  // The one that was interrupted may be there.
  assert.ok(appends === returned || appends === returned + 1, `worker ${worker}: ${returned} returned, ${appends} are there`);
  assert.deepEqual(entries, Array.from({ length: appends }, (_, n) => [{ type: "a", n }, { type: "b", n }]).flat());
  await store.append(key(worker), [{ type: "c" }]);
  assert.equal((await store.load(key(worker)))?.length, entries.length + 1);
}

if (process.argv[2] === "load") {
  await Promise.all(workers.map(load));
} else {
  const lines = (await text(process.stdin)).split("\n");
  await Promise.all(workers.map((worker) => check(worker, lines.filter((line) => line.startsWith(`${worker} `)).length)));
}
