// Writes to a server that is killed meanwhile, and checks what it has after it was started again.
//
//   node kill.js load   adds items, prints each call that returned, and ends when the server does
//   node kill.js check  reads these lines, and fails if an item is missing or there twice
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";

import type { AgentInputItem } from "@openai/agents-core";

import { newSession } from "./server.js";

const workers = [0, 1, 2, 3];
const items = (n: number): AgentInputItem[] => [{ role: "user", content: `a ${n}` }, { role: "user", content: `b ${n}` }];

async function load(worker: number): Promise<void> {
  const session = newSession(`kill-${worker}`);
  for (let n = 0; ; n++) {
    try {
      // Half of them are operations, which may be repeated.
      if (n % 2 === 0) {
        await session.addItems(items(n));
      } else {
        await session.applyHistoryTransaction(operation(n));
      }
    } catch {
      return;
    }
    console.log(`${worker} ${n}`);
  }
}

function operation(n: number) {
  return { operationId: `operation ${n}`, transaction: { type: "append_items" as const, items: items(n) } };
}

async function check(worker: number, returned: number): Promise<void> {
  const session = newSession(`kill-${worker}`);
  const found = await session.getItems();
  const calls = found.length / 2;
  // The one that was interrupted may be there.
  assert.ok(calls === returned || calls === returned + 1, `worker ${worker}: ${returned} returned, ${calls} are there`);
  assert.deepEqual(found, Array.from({ length: calls }, (_, n) => items(n)).flat());
  for (let n = 1; n < calls; n += 2) {
    await session.applyHistoryTransaction(operation(n));
  }
  assert.deepEqual(await session.getItems(), found);
}

if (process.argv[2] === "load") {
  await Promise.all(workers.map(load));
} else {
  const lines = (await text(process.stdin)).split("\n");
  await Promise.all(workers.map((worker) => check(worker, lines.filter((line) => line.startsWith(`${worker} `)).length)));
}
