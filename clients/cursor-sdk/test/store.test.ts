// What the script of calls leaves out: ids of all kinds, sizes, several writers.
import assert from "node:assert/strict";
import { test } from "node:test";

import type { LocalAgentDocument, LocalAgentRunDocument } from "@cursor/sdk";

import { ours } from "./server.js";

const here = `${process.pid}-${Date.now()}`;

function agent(agentId: string): LocalAgentDocument {
  return { agentId, cwd: "/work", status: "idle", createdAt: 1, updatedAt: 1 };
}

function run(agentId: string, runId: string, turnNumber: number): LocalAgentRunDocument {
  return { agentId, runId, turnNumber, status: "queued", createdAt: 1, updatedAt: 1 };
}

const strange = ["a/b", "a", "a/", "/", "", "..", "%2F", "a b", "A", "B", "b", "_", "-", "é", "☃", "😀", "\uffee", "new\nline", "tab\t", "x".repeat(300)];

test("ids may have any characters, and pages lose none of them", async () => {
  const store = ours(`ids-${here}`);
  for (const [turn, id] of strange.entries()) {
    await store.agents.create({ agent: agent(id) });
    await store.runs.create({ run: run(id, id, turn) });
    await store.checkpoints.create({ agentId: "a/b", blobId: id, data: new TextEncoder().encode(id) });
    assert.equal((await store.runEvents.append({ runId: id, eventType: "t", payload: id, idempotencyKey: id })).seq, 1);
  }
  const sorted = [...strange].sort();
  const paged = async (list: (filter: { limit: number; cursor?: string }) => Promise<{ items: readonly unknown[]; nextCursor?: string }>) => {
    const all: unknown[] = [];
    let cursor: string | undefined;
    do {
      const part = await list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      all.push(...part.items);
      cursor = part.nextCursor;
    } while (cursor !== undefined);
    return all;
  };
  assert.deepEqual((await paged((filter) => store.agents.list({ filter }))).map((a) => (a as LocalAgentDocument).agentId), [...sorted].reverse());
  assert.deepEqual((await paged((filter) => store.runs.list({ filter }))).map((r) => (r as LocalAgentRunDocument).runId), strange);
  assert.deepEqual(await paged((filter) => store.checkpoints.list({ filter })), sorted);
  await store.agents.delete({ filter: { agentIds: ["a"] } });
  assert.equal(await store.runs.get({ agentId: "a", runId: "a" }), null);
  assert.deepEqual((await store.runEvents.list({ runId: "a" })).items, []);
  for (const id of strange.filter((other) => other !== "a")) {
    assert.equal((await store.agents.get({ agentId: id }))?.agentId, id);
    assert.equal((await store.runs.get({ agentId: id, runId: id }))?.runId, id);
    assert.equal((await store.runEvents.list({ runId: id })).items[0]?.payload, id);
    assert.deepEqual(await store.checkpoints.get({ agentId: "a/b", blobId: id }), new TextEncoder().encode(id));
  }
});

test("a checkpoint and an event may be larger than a message", async () => {
  const store = ours(`large-${here}`);
  const data = Uint8Array.from({ length: 9_000_000 }, (_, i) => (i * i) >> 3);
  await store.checkpoints.create({ agentId: "a", blobId: "b", data });
  assert.ok(Buffer.from(data).equals((await store.checkpoints.get({ agentId: "a", blobId: "b" }))!));
  const payload = "word ".repeat(900_000);
  await store.runEvents.append({ runId: "r", eventType: "t", payload });
  assert.equal((await store.runEvents.list({ runId: "r" })).items[0]?.payload, payload);
});

test("writers of one run append each event once, without a gap", async () => {
  const writers = Array.from({ length: 6 }, () => ours(`writers-${here}`));
  const appended = await Promise.all(
    writers.flatMap((store, w) => Array.from({ length: 10 }, (_, n) => store.runEvents.append({ runId: "r", eventType: "t", payload: `${w} ${n}` }))),
  );
  const again = await Promise.all(writers.map((store, w) => store.runEvents.append({ runId: "r", eventType: "t", payload: w, idempotencyKey: "once" })));
  assert.deepEqual(new Set(again.map(({ seq }) => seq)), new Set([61]));
  const { items } = await writers[0]!.runEvents.list({ runId: "r" });
  assert.deepEqual(items.map(({ seq }) => seq), Array.from({ length: 61 }, (_, n) => n + 1));
  assert.deepEqual(items.slice(0, 60), appended.sort((a, b) => a.seq - b.seq));
});

test("appends that do not wait for each other keep their order, and a failed one harms no other", async () => {
  const store = ours(`order-${here}`);
  const circle: Record<string, unknown> = {};
  circle.self = circle; // cannot be stored
  const calls = Array.from({ length: 20 }, (_, n) => store.runEvents.append({ runId: "r", eventType: "t", payload: n === 5 ? circle : n }));
  const settled = await Promise.allSettled(calls);
  assert.deepEqual(settled.flatMap(({ status }, n) => (status === "rejected" ? [n] : [])), [5]);
  const { items } = await store.runEvents.list({ runId: "r" });
  assert.deepEqual(items.map(({ seq, payload }) => [seq, payload]), Array.from({ length: 19 }, (_, n) => [n + 1, n < 5 ? n : n + 1]));
});

test("of agents that are created at the same time one wins, and no run outlives its agent", async () => {
  const [a, b] = [ours(`race-${here}`), ours(`race-${here}`)];
  for (let n = 0; n < 10; n++) {
    const made = await Promise.allSettled([a, b].map((store) => store.agents.create({ agent: agent("x") })));
    assert.equal(made.filter(({ status }) => status === "fulfilled").length, 1);
    await Promise.allSettled([a.agents.delete({ filter: { agentIds: ["x"] } }), ...[1, 2, 3].map((t) => b.runs.create({ run: run("x", `r${t}`, t) }))]);
    assert.equal(await b.agents.get({ agentId: "x" }), null);
    assert.deepEqual((await b.runs.list()).items, []);
    for (const t of [1, 2, 3]) {
      assert.equal(await b.runs.get({ agentId: "x", runId: `r${t}` }), null);
    }
  }
});

test("an agent with many runs is deleted with all of them", async () => {
  const store = ours(`many-${here}`);
  await store.agents.create({ agent: agent("a") });
  await store.agents.create({ agent: agent("b") });
  await store.runs.create({ run: run("b", "b1", 1) });
  for (let turn = 1; turn <= 200; turn++) {
    await store.runs.create({ run: run("a", `r${turn}`, turn) });
  }
  await store.runEvents.append({ runId: "r7", eventType: "t" });
  await store.agents.delete({ filter: { agentIds: ["a"] } });
  assert.deepEqual((await store.runs.list({ filter: { limit: 1000 } })).items.map(({ runId }) => runId), ["b1"]);
  assert.deepEqual((await store.runEvents.list({ runId: "r7" })).items, []);
});

test("an agent whose active run has not ended is not deleted, and loses nothing", async () => {
  const store = ours(`active-${here}`);
  await store.agents.create({ agent: { ...agent("a"), activeRunId: "r" } });
  await store.runs.create({ run: { ...run("a", "r", 1), status: "running" } });
  await store.checkpoints.create({ agentId: "a", blobId: "b", data: new Uint8Array([1]) });
  await store.runEvents.append({ runId: "r", eventType: "t" });
  const refused = { message: "Cannot delete agent a: active run r is not terminal. Call run.cancel() first." };
  await assert.rejects(store.agents.delete({ filter: { agentIds: ["a"] } }), refused);
  assert.deepEqual((await store.checkpoints.list()).items, ["b"]);
  assert.equal((await store.runEvents.list({ runId: "r" })).items.length, 1);
  await store.runs.update({ run: { ...run("a", "r", 1), status: "finished" } });
  await store.agents.delete({ filter: { agentIds: ["a"] } });
  assert.deepEqual((await store.checkpoints.list()).items, []);
  assert.deepEqual((await store.runs.list()).items, []);
});

test("an empty filter deletes all events", async () => {
  const store = ours(`events-${here}`);
  await store.runEvents.append({ runId: "r1", eventType: "t" });
  await store.runEvents.append({ runId: "r2", eventType: "t" });
  await store.runEvents.delete({ filter: {} });
  assert.deepEqual((await store.runEvents.list({ runId: "r1" })).items, []);
  assert.deepEqual((await store.runEvents.list({ runId: "r2" })).items, []);
});
