// What the store promises beyond the contracts.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { InMemorySessionStore, foldSessionSummary, type Options, type SessionKey, type SessionStoreEntry } from "@anthropic-ai/claude-agent-sdk";

import { StetSessionStore } from "../src/index.js";
import { before, newStore } from "./server.js";

const key: SessionKey = { projectKey: "project", sessionId: "session" };

test("the SDK's types accept the store", () => {
  const options: Options = { sessionStore: newStore() };
  assert.ok(options.sessionStore instanceof StetSessionStore);
});

test("appends without waiting stay in the order of the calls, as they were at the call", async () => {
  const store = newStore();
  const entry = { type: "a", n: 0 };
  const appends = [];
  for (; entry.n < 20; entry.n++) {
    appends.push(store.append(key, [entry]));
  }
  await Promise.all(appends);
  assert.deepEqual((await store.load(key))?.map((e) => e["n"]), [...appends.keys()]);
});

test("two writers at once lose nothing", async () => {
  const collection = `test-${randomUUID()}`;
  const rounds = 25;
  await Promise.all(
    ["x", "y", "z"].map(async (writer) => {
      const store = newStore(collection);
      for (let n = 0; n < rounds; n++) {
        await store.append(key, [{ type: writer, n, [writer === "x" ? "customTitle" : "other"]: `title ${n}` }]);
      }
    }),
  );
  const store = newStore(collection);
  const entries = (await store.load(key)) ?? [];
  assert.equal(entries.length, 3 * rounds);
  for (const writer of ["x", "y", "z"]) {
    assert.deepEqual(entries.filter((e) => e.type === writer).map((e) => e["n"]), [...Array(rounds).keys()]);
  }
  // The summary is what the entries in this order give.
  const [summary] = await store.listSessionSummaries(key.projectKey);
  assert.deepEqual(summary?.data, foldSessionSummary(undefined, key, entries).data);
});

test("an append that comes after another writer's is made again", async () => {
  const collection = `test-${randomUUID()}`;
  const late = newStore(collection, before("Commit", 1, () => newStore(collection).append(key, [{ type: "a" }])));
  await late.append(key, [{ type: "b" }]);
  assert.deepEqual(await late.load(key), [{ type: "a" }, { type: "b" }]);
});

test("a session that begins again while it is loaded is not mixed with what it was", async () => {
  const collection = `test-${randomUUID()}`;
  const store = newStore(collection);
  const fill = async (type: string) => {
    for (let n = 0; n < 6; n++) {
      await store.append(key, [{ type, n, text: "x".repeat(900_000) }]);
    }
  };
  await fill("old");
  let again = false;
  const reader = newStore(collection, before("List", 2, async () => {
    await store.delete(key);
    await fill("new");
    again = true;
  }));
  assert.deepEqual((await reader.load(key))?.map((e) => e.type), Array(6).fill("new"));
  assert.ok(again, "the list had one page");
  await store.delete(key);
  await fill("old");
  const late = newStore(collection, before("List", 2, () => store.delete(key)));
  assert.equal(await late.load(key), null);
});

test("an entry that comes again with its uuid is loaded once", async () => {
  const store = newStore();
  const batch = [{ type: "a", uuid: "1" }, { type: "title" }, { type: "b", uuid: "2" }];
  await store.append(key, batch);
  await store.append(key, batch);
  assert.deepEqual(await store.load(key), [...batch, { type: "title" }]);
});

test("entries larger than a message are kept", async () => {
  const store = newStore();
  // Characters of several bytes are cut between two parts, too.
  const entries = [{ type: "a", text: "äß漢".repeat(1_000_000) }, { type: "b" }, { type: "c", text: "x".repeat(2_500_000) }];
  await store.append(key, entries);
  await store.append(key, [{ type: "d" }]);
  assert.deepEqual(await store.load(key), [...entries, { type: "d" }]);
});

test("a summary that is too large is left out, and the session is listed", async () => {
  const store = newStore();
  await store.append(key, [{ type: "a", customTitle: "x".repeat(600_000) }]);
  await store.append(key, [{ type: "a", customTitle: "short" }]);
  assert.deepEqual(await store.listSessionSummaries(key.projectKey), []);
  assert.equal((await store.listSessions(key.projectKey)).length, 1);
});

test("times of sessions and summaries are the same", async () => {
  const store = newStore();
  await store.append(key, [{ type: "a" }]);
  const [before] = await store.listSessions(key.projectKey);
  await store.append({ ...key, subpath: "subagents/a" }, [{ type: "a" }]);
  assert.deepEqual(await store.listSessions(key.projectKey), [before]);
  const [summary] = await store.listSessionSummaries(key.projectKey);
  assert.equal(summary?.mtime, before?.mtime);
});

test("a session that was deleted begins again", async () => {
  const store = newStore();
  for (const n of [1, 2]) {
    await store.append(key, [{ type: "a", n }, { type: "tag", tag: `${n}` }]);
    assert.deepEqual(await store.load(key), [{ type: "a", n }, { type: "tag", tag: `${n}` }]);
    await store.delete(key);
    assert.deepEqual(await store.listSessionSummaries(key.projectKey), []);
  }
});

test("keys are kept apart whatever they contain", async () => {
  const store = newStore();
  const keys: SessionKey[] = [];
  for (const a of ["a", "a/b", "a%2Fb", "%", "ä漢 \t\u007f", "..", "session/a"]) {
    for (const b of ["b", "b/b", "//"]) {
      keys.push({ projectKey: a, sessionId: b }, { projectKey: a, sessionId: b, subpath: b }, { projectKey: b, sessionId: a, subpath: a });
    }
  }
  await Promise.all(keys.map((k) => store.append(k, [{ type: JSON.stringify(k) }])));
  for (const k of keys) {
    assert.deepEqual(await store.load(k), [{ type: JSON.stringify(k) }]);
  }
  assert.deepEqual((await store.listSessions("ä漢 \t\u007f")).map((s) => s.sessionId).sort(), ["//", "b", "b/b"]);
  assert.deepEqual(await store.listSubkeys({ projectKey: "b/b", sessionId: "a%2Fb" }), ["a%2Fb"]);
});

test("bad keys are refused", async () => {
  const store = newStore();
  for (const bad of [{ ...key, subpath: "" }, { ...key, sessionId: "" }, { ...key, projectKey: "\ud800" }, { sessionId: "s" } as SessionKey]) {
    await assert.rejects(store.append(bad, [{ type: "a" }]), TypeError);
    await assert.rejects(store.load(bad), TypeError);
    await assert.rejects(store.delete(bad), TypeError);
  }
});

test("random calls give what they give with the SDK's own store", async () => {
  const [ours, theirs] = [newStore(), new InMemorySessionStore()];
  const random = generator(7);
  const pick = <T>(...all: T[]): T => all[Math.floor(random() * all.length)]!;
  const sorted = <T>(all: T[], of: (one: T) => string) => all.sort((a, b) => (of(a) < of(b) ? -1 : 1));
  let uuid = 0;
  for (let call = 0; call < Number(process.env["STET_CALLS"] ?? 300); call++) {
    const subpath = pick(undefined, undefined, "subagents/a", "subagents/b/c", "x");
    const at: SessionKey = { projectKey: pick("p", "p2", "q"), sessionId: pick("s", "s2", "t"), ...(subpath === undefined ? {} : { subpath }) };
    const results = [];
    const what = pick("append", "append", "append", "load", "load", "delete", "listSessions", "listSessionSummaries", "listSubkeys");
    const entries: SessionStoreEntry[] = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
      type: pick("user", "assistant", "tag", "custom-title"),
      ...(random() < 0.7 ? { uuid: `u${uuid++}`, timestamp: new Date(1e12 + call * 1000).toISOString() } : {}),
      [pick("tag", "customTitle", "lastPrompt", "gitBranch", "cwd")]: `t${call}`,
      message: { role: "user", content: `prompt ${call}` },
    }));
    for (const store of [ours, theirs]) {
      switch (what) {
        case "append":
          results.push(await store.append(at, entries));
          break;
        case "load":
          results.push(structuredClone(await store.load(at)));
          break;
        case "delete":
          // A rare event, so that sessions grow.
          results.push(call % 5 === 0 ? await store.delete(at) : null);
          break;
        case "listSessions":
          results.push((await store.listSessions(at.projectKey)).map((s) => s.sessionId).sort());
          break;
        case "listSessionSummaries":
          results.push(sorted(await store.listSessionSummaries(at.projectKey), (s) => s.sessionId).map(({ sessionId, data }) => ({ sessionId, data })));
          break;
        case "listSubkeys":
          results.push((await store.listSubkeys(at)).sort());
      }
    }
    assert.deepEqual(results[0], results[1], `call ${call}: ${what} ${JSON.stringify(at)}`);
  }
});

/** Returns random numbers that are the same in each run. */
function generator(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}
