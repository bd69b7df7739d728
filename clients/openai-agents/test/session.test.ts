// What the session promises beyond the SDK's own one.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import {
  Agent,
  MemorySession,
  UserError,
  isSessionHistoryRewriteAwareSession,
  isSessionHistoryTransactionAwareSession,
  run,
  setTracingDisabled,
  tool,
  type AgentInputItem,
  type Session,
} from "@openai/agents-core";
import { ScriptedModel, assistantMessage, functionCall } from "@openai/agents-core/testing";

import { z } from "zod";

import { talk } from "../examples/resume.js";
import { Names } from "../src/names.js";
import { before, newSession } from "./server.js";

setTracingDisabled(true);

const user = (content: string, providerData?: Record<string, unknown>): AgentInputItem => ({ role: "user", content, ...(providerData && { providerData }) });
const contents = (items: AgentInputItem[]) => items.map((item) => (item as { content: string }).content);

test("the SDK finds the capabilities of a session", async () => {
  const session: Session = newSession("a");
  assert.ok(isSessionHistoryRewriteAwareSession(session) && isSessionHistoryTransactionAwareSession(session));
  assert.equal(typeof session.replaceHistoryWithCompaction, "function");
  assert.equal(await session.getSessionId(), "a");
});

test("a run of an agent leaves the same items as with the session in memory", async () => {
  const id = randomUUID();
  const histories = [];
  for (const session of [() => newSession(id), ((memory) => () => memory)(new MemorySession())]) {
    const model = new ScriptedModel([
      [functionCall("weather", { city: "Oslo" }, { callId: "call-1" })],
      [assistantMessage("It rains.", { id: "m1" })],
      [assistantMessage("Still.", { id: "m2" })],
    ]);
    const parameters = z.object({ city: z.string() });
    const weather = tool({ name: "weather", description: "The weather", parameters, execute: async () => "rain" });
    const agent = new Agent({ name: "a", model, tools: [weather] });
    assert.equal((await run(agent, "Weather?", { session: session() })).finalOutput, "It rains.");
    // The second run has an object of its own, as another process has.
    assert.equal((await run(agent, "And now?", { session: session() })).finalOutput, "Still.");
    histories.push(JSON.parse(JSON.stringify(await session().getItems())));
  }
  assert.equal(histories[0].length, 6);
  assert.deepEqual(histories[0], histories[1]);
});

test("the example shows the model what was said before", async () => {
  const id = randomUUID();
  const want = ["Where is Oslo? Oslo is in Norway. (1 items)", "How many people live there? About 700,000 people. (3 items)"];
  assert.deepEqual(await talk(() => newSession(id)), want);
});

test("writers at once lose nothing", async () => {
  const id = randomUUID();
  const rounds = 20;
  const writers = ["x", "y"].map(async (name) => {
    const session = newSession(id);
    for (let n = 0; n < rounds; n++) {
      await session.addItems([user(`${name}${n}`), user(`${name}${n}`)]);
    }
  });
  const popped: string[] = [];
  const popper = async () => {
    const session = newSession(id);
    while (popped.length < rounds) {
      const item = await session.popItem();
      popped.push(...(item === undefined ? [] : contents([item])));
    }
  };
  await Promise.all([...writers, popper()]);
  const all = [...contents(await newSession(id).getItems()), ...popped].sort();
  const want = ["x", "y"].flatMap((name) => [...Array(rounds).keys()].flatMap((n) => [`${name}${n}`, `${name}${n}`])).sort();
  assert.deepEqual(all, want);
});

test("additions are read whole", async () => {
  const id = randomUUID();
  const [writer, reader] = [newSession(id), newSession(id)];
  let writing = true;
  const adding = (async () => {
    for (let n = 0; n < 12; n++) {
      await writer.addItems(Array.from({ length: 250 }, () => user(`${n}`)));
    }
    writing = false;
  })();
  while (writing) {
    assert.equal((await reader.getItems()).length % 250, 0);
  }
  await adding;
  assert.equal((await reader.getItems()).length, 12 * 250);
});

test("a history that is replaced between two pages is read again", async () => {
  const id = randomUUID();
  const of = (letter: string) => Array.from({ length: 10 }, () => user(letter.repeat(400_000)));
  await newSession(id).addItems(of("a"));
  let replaced = false;
  const reader = newSession(id, before("List", 2, async () => {
    await newSession(id).replaceHistoryWithCompaction(of("b"));
    replaced = true;
  }));
  assert.deepEqual(await reader.getItems(), of("b"));
  assert.ok(replaced, "the list had one page");
});

test("an operation that another process applies meanwhile is not applied again", async () => {
  const id = randomUUID();
  const operations = [
    { operationId: "1", transaction: { type: "append_items" as const, items: [user("a"), user("b")] } },
    { operationId: "2", transaction: { type: "replace_suffix" as const, expectedSuffix: [user("b")], replacement: [user("c")] } },
  ];
  for (const args of operations) {
    for (const [method, nth] of [["Commit", 1], ["Get", 1], ["Get", 2]] as const) {
      const late = newSession(id, before(method, nth, () => newSession(id).applyHistoryTransaction(args)));
      await late.applyHistoryTransaction(args);
    }
  }
  assert.deepEqual(contents(await newSession(id).getItems()), ["a", "c"]);
});

test("a change that comes after another writer's is made again", async () => {
  const id = randomUUID();
  const meanwhile = () => newSession(id).addItems([user("meanwhile")]);
  await newSession(id, before("Commit", 1, meanwhile)).addItems([user("a")]);
  const popped = await newSession(id, before("Commit", 1, meanwhile)).popItem();
  assert.deepEqual(contents([popped!]), ["meanwhile"]);
  assert.deepEqual(contents(await newSession(id).getItems()), ["meanwhile", "a"]);
});

test("an operation is applied once, whoever repeats it", async () => {
  const id = randomUUID();
  await newSession(id).addItems([user("a"), user("b")]);
  const append = { operationId: "1", transaction: { type: "append_items" as const, items: [user("c", { x: 1, y: undefined })] } };
  const replace = {
    operationId: "2",
    // What is undefined here was not stored, and is no difference.
    transaction: { type: "replace_suffix" as const, expectedSuffix: [user("c", { y: undefined, x: 1 })], replacement: [user("d"), user("e")] },
  };
  for (const args of [append, replace]) {
    await Promise.all(Array.from({ length: 4 }, () => newSession(id).applyHistoryTransaction(args)));
  }
  assert.deepEqual(contents(await newSession(id).getItems()), ["a", "b", "d", "e"]);
  const other = { operationId: "1", transaction: { type: "append_items" as const, items: [user("f")] } };
  await assert.rejects(newSession(id).applyHistoryTransaction(other), UserError);
  await newSession(id).clearSession();
  await newSession(id).applyHistoryTransaction(other);
  assert.deepEqual(contents(await newSession(id).getItems()), ["f"]);
});

test("calls without waiting happen in their order, with items as they were at the call", async () => {
  const session = newSession();
  const item = { role: "user" as const, content: "0" };
  const calls: Promise<unknown>[] = [];
  for (let n = 0; n < 10; n++) {
    item.content = String(n);
    calls.push(session.addItems([item]));
  }
  calls.push(session.popItem());
  calls.push(session.applyHistoryTransaction({ operationId: "1", transaction: { type: "append_items", items: [user("x")] } }));
  const items = session.getItems(2);
  await Promise.all(calls);
  assert.deepEqual(contents(await items), ["8", "x"]);
});

test("items larger than a message, and many, are kept", async () => {
  const id = randomUUID();
  const large = [user("a"), user("äß漢".repeat(1_000_000)), user("x".repeat(2_500_000)), user("b")];
  await newSession(id).addItems(large);
  assert.deepEqual(await newSession(id).getItems(), large);
  assert.deepEqual(await newSession(id).getItems(3), large.slice(1));
  const many = Array.from({ length: 2_500 }, (_, n) => user(`${n}`));
  await newSession(id).addItems(many);
  assert.deepEqual(await newSession(id).getItems(), [...large, ...many]);
  await newSession(id).replaceHistoryWithCompaction(large.slice(0, 3));
  for (const want of [...large.slice(0, 3).reverse(), undefined]) {
    assert.deepEqual(await newSession(id).popItem(), want);
  }
});

test("what cannot be kept is refused, and nothing is changed", async () => {
  const session = newSession();
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  for (const bad of [NaN, new Map(), new Date(), 1n, [undefined], cycle, () => 1, Symbol()]) {
    await assert.rejects(session.addItems([user("a"), user("b", { bad })]), /cannot be kept|could not be cloned/);
  }
  assert.deepEqual(await session.getItems(), []);
  for (const sessionId of ["", "\ud800", 7 as unknown as string]) {
    assert.throws(() => newSession(sessionId), TypeError);
  }
});

test("sessions are kept apart whatever their ids are", async () => {
  const base = randomUUID();
  const ids = ["", "/", "/head", "%2F", "ä\t", "/0000000000"].map((rest) => base + rest);
  for (const id of ids) {
    await newSession(id).addItems([user(id)]);
  }
  await newSession(base).clearSession();
  for (const id of ids) {
    assert.deepEqual(contents(await newSession(id).getItems()), id === base ? [] : [id]);
  }
});

test("the prefixes of positions have those from one on, and no other", () => {
  const names = new Names("s");
  for (const [position, end] of [[0, 1], [7, 12], [99, 1234], [1000, 1000], [998, 1001], [0, 99_999]] as const) {
    const prefixes = names.from(position, end);
    assert.ok(prefixes.length <= 100);
    for (let n = Math.max(0, position - 200); n < end; n += end > 10_000 ? 7 : 1) {
      assert.equal(prefixes.some((prefix) => names.at(n).startsWith(prefix)), n >= position, `${n} of ${position} to ${end}`);
    }
    assert.ok(!prefixes.some((prefix) => names.head.startsWith(prefix)));
  }
});
