// The 13 contracts that an adapter must fulfil, as the repository of the SDK
// (anthropics/claude-agent-sdk-typescript) states them in examples/session-stores/shared/conformance.ts.
// That file is not in the npm package, so the contracts are written down here again. The
// SDK's own store fulfils all of them but one.
import assert from "node:assert/strict";
import { test } from "node:test";

import { InMemorySessionStore, type SessionKey, type SessionStore, type SessionStoreEntry } from "@anthropic-ai/claude-agent-sdk";

import { newStore } from "./server.js";

const main: SessionKey = { projectKey: "project", sessionId: "session" };
const first: SessionKey = { ...main, subpath: "subagents/first" };
const second: SessionKey = { ...main, subpath: "subagents/second" };
const otherSession: SessionKey = { projectKey: "project", sessionId: "session-2" };
const otherProject: SessionKey = { projectKey: "project-2", sessionId: "session" };

const entry = (type: string, rest: Record<string, unknown> = {}): SessionStoreEntry => ({ type, ...rest });
const ids = async (store: Required<SessionStore>, project: string) => (await store.listSessions(project)).map((s) => s.sessionId).sort();

/** Appends to each key one entry that names it. */
async function fill(store: SessionStore, ...keys: SessionKey[]): Promise<void> {
  for (const key of keys) {
    await store.append(key, [entry(JSON.stringify(key))]);
  }
}

/** Requires that keys have what `fill` gave them, or nothing. */
async function holds(store: SessionStore, has: SessionKey[], lacks: SessionKey[] = []): Promise<void> {
  for (const key of has) {
    assert.deepEqual(await store.load(key), [entry(JSON.stringify(key))]);
  }
  for (const key of lacks) {
    assert.equal(await store.load(key), null);
  }
}

const contracts: Record<string, (store: Required<SessionStore>) => Promise<void>> = {
  "what was appended is loaded in the same order": async (store) => {
    const entries = [entry("z", { uuid: "2", deep: { list: [1, { a: null }], text: "ü\n\u2028" } }), entry("a", { uuid: "1" })];
    await store.append(main, entries);
    assert.deepEqual(await store.load(main), entries);
  },
  "an unknown key is loaded as null": async (store) => {
    await holds(store, [], [main, first]);
    await fill(store, main);
    await holds(store, [main], [first, otherSession, otherProject]);
  },
  "appends stay in the order of the calls": async (store) => {
    await store.append(main, [entry("1")]);
    await store.append(main, [entry("2"), entry("3")]);
    await store.append(main, [entry("4")]);
    assert.deepEqual((await store.load(main))?.map((e) => e.type), ["1", "2", "3", "4"]);
  },
  "an append of nothing changes nothing": async (store) => {
    await store.append(main, []);
    assert.equal(await store.load(main), null);
    await fill(store, main);
    await store.append(main, []);
    await holds(store, [main]);
  },
  "a subpath is a transcript of its own": async (store) => {
    await fill(store, main, first);
    await holds(store, [main, first]);
  },
  "projects are apart": async (store) => {
    await fill(store, main, otherProject);
    await holds(store, [main, otherProject]);
    assert.deepEqual([await ids(store, "project"), await ids(store, "project-2")], [["session"], ["session"]]);
  },
  "the sessions of a project are listed with times in milliseconds": async (store) => {
    await fill(store, main, otherSession, otherProject);
    assert.deepEqual(await ids(store, "project"), ["session", "session-2"]);
    for (const { mtime } of await store.listSessions("project")) {
      assert.ok(Number.isInteger(mtime) && mtime > 1e12, String(mtime));
    }
    assert.deepEqual(await store.listSessions("never"), []);
  },
  "subagents are not listed as sessions": async (store) => {
    await fill(store, first);
    assert.deepEqual(await ids(store, "project"), []);
    await fill(store, main);
    assert.deepEqual(await ids(store, "project"), ["session"]);
  },
  "a deleted session is loaded as null": async (store) => {
    await store.delete(main);
    await fill(store, main);
    await store.delete(main);
    await holds(store, [], [main]);
  },
  "deleting a session deletes its subagents and nothing else": async (store) => {
    await fill(store, main, first, second, otherSession, otherProject);
    await store.delete(main);
    await holds(store, [otherSession, otherProject], [main, first, second]);
    assert.deepEqual(await store.listSubkeys(main), []);
    assert.deepEqual(await ids(store, "project"), ["session-2"]);
  },
  "deleting a subagent deletes nothing else": async (store) => {
    await fill(store, main, first, second);
    await store.delete(first);
    await holds(store, [main, second], [first]);
    assert.deepEqual(await store.listSubkeys(main), [second.subpath]);
  },
  "the subpaths of a session are listed": async (store) => {
    await fill(store, main, first, second, { ...otherSession, subpath: "subagents/third" });
    assert.deepEqual((await store.listSubkeys(main)).sort(), [first.subpath, second.subpath]);
  },
  "the session itself is not listed as a subpath": async (store) => {
    await fill(store, main);
    assert.deepEqual(await store.listSubkeys(main), []);
    assert.deepEqual(await store.listSubkeys({ projectKey: "never", sessionId: "never" }), []);
  },
};

for (const [name, contract] of Object.entries(contracts)) {
  test(name, () => contract(newStore()));
}

test("the SDK's own store fulfils all contracts but one", async () => {
  const failed: string[] = [];
  for (const [name, contract] of Object.entries(contracts)) {
    await contract(new InMemorySessionStore()).catch(() => failed.push(name));
  }
  assert.deepEqual(failed, ["an append of nothing changes nothing"]);
  assert.equal(Object.keys(contracts).length, 13);
});
