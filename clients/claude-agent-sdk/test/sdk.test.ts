// The SDK's own functions give with our store what they give with the SDK's store. They run
// without the native binary of Claude Code.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import {
  InMemorySessionStore,
  deleteSession,
  forkSession,
  getSessionInfo,
  getSessionMessages,
  getSubagentMessages,
  listSessions,
  listSubagents,
  renameSession,
  tagSession,
  type SessionStore,
  type SessionStoreEntry,
} from "@anthropic-ai/claude-agent-sdk";

import { copySessions } from "../examples/import.js";
import { newStore } from "./server.js";

const dir = await realpath(await mkdtemp(join(tmpdir(), "stet-sessions-")));

/** Returns the project that the SDK makes of the directory. */
async function projectOf(): Promise<string> {
  const asked: string[] = [];
  const spy = { append: async () => {}, load: async () => null, listSessions: async (key: string) => (asked.push(key), []) };
  await listSessions({ dir, sessionStore: spy });
  return asked[0]!;
}

const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

/** Returns a transcript as Claude Code writes it, with ids from a number on. */
function transcript(sessionId: string, from: number, turns: number, rest: Record<string, unknown> = {}): SessionStoreEntry[] {
  const common = { sessionId, cwd: dir, gitBranch: "main", isSidechain: false, userType: "external", version: "2.1.0", ...rest };
  return Array.from({ length: 2 * turns }, (_, n) => ({
    ...common,
    type: n % 2 === 0 ? "user" : "assistant",
    uuid: id(from + n),
    parentUuid: n === 0 ? null : id(from + n - 1),
    timestamp: new Date(1.7e12 + n * 1000).toISOString(),
    message: n % 2 === 0 ? { role: "user", content: `question ${n}` } : { role: "assistant", content: [{ type: "text", text: `answer ${n}` }] },
  }));
}

/** Calls the SDK's functions, and returns what they return. */
async function script(sessionStore: SessionStore): Promise<unknown[]> {
  const projectKey = await projectOf();
  const [one, two, agent] = [id(1), id(2), "a1b2c3"];
  const at = { dir, sessionStore };
  const results: unknown[] = [];
  const forks = new Map<string, string>();
  const keep = (value: unknown) => results.push(plain(value, forks));
  const look = async () => {
    keep((await listSessions(at)).sort((a, b) => (a.summary < b.summary ? -1 : 1)));
    for (const session of [one, two, id(3), ...forks.keys()]) {
      keep([await getSessionInfo(session, at), await getSessionMessages(session, at), await listSubagents(session, at)]);
      keep(await getSessionMessages(session, { ...at, limit: 2, offset: 1 }));
      keep(await getSubagentMessages(session, agent, at));
    }
  };
  await look();
  for (const entry of transcript(one, 100, 3)) {
    await sessionStore.append({ projectKey, sessionId: one }, [entry]);
  }
  await sessionStore.append({ projectKey, sessionId: two }, transcript(two, 200, 2));
  await sessionStore.append({ projectKey, sessionId: one, subpath: `subagents/agent-${agent}` }, transcript(one, 300, 2, { isSidechain: true, agentId: agent }));
  await look();
  await renameSession(one, "renamed", at);
  await tagSession(two, "tagged", at);
  await look();
  for (const options of [{}, { upToMessageId: id(101), title: "part" }]) {
    const fork = await forkSession(one, { ...at, ...options });
    forks.set(fork.sessionId, `fork ${forks.size}`);
    keep(fork);
  }
  await look();
  await tagSession(two, null, at);
  await deleteSession(one, at);
  await look();
  for (const wrong of [() => renameSession(id(9), "x", at), () => forkSession(id(9), at), () => getSessionInfo("no id", at)]) {
    keep(await wrong().then((value) => ({ value }), (error: Error) => ({ error: error.message })));
  }
  return results;
}

/** Replaces what differs between two runs: times of storage and the random ids of forks. */
function plain(value: unknown, forks: Map<string, string>): unknown {
  const text = JSON.stringify(value, (name, v: unknown) => (["lastModified", "timestamp", "createdAt"].includes(name) ? "time" : v));
  const known = (uuid: string) => forks.get(uuid) ?? (uuid.startsWith("00000000-") ? uuid : "random");
  return text === undefined ? undefined : JSON.parse(text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, known));
}

test("the SDK's functions give the same as with its own store", async () => {
  const [ours, theirs] = [await script(newStore()), await script(new InMemorySessionStore())];
  assert.equal(ours.length, theirs.length);
  for (const [n, result] of ours.entries()) {
    assert.deepEqual(result, theirs[n], `result ${n}`);
  }
  // They did find something.
  assert.match(JSON.stringify(ours), /answer 5.*renamed.*tagged.*fork 1/);
});

test("local sessions are copied, and copied again without doubles", async () => {
  process.env["CLAUDE_CONFIG_DIR"] = join(dir, "config");
  const project = join(dir, "config", "projects", await projectOf());
  await mkdir(join(project, id(1), "subagents"), { recursive: true });
  const file = (entries: SessionStoreEntry[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
  const [main, agent] = [transcript(id(1), 100, 3), transcript(id(1), 300, 2, { isSidechain: true, agentId: "a1b2c3" })];
  await writeFile(join(project, `${id(1)}.jsonl`), file(main));
  await writeFile(join(project, id(1), "subagents", "agent-a1b2c3.jsonl"), file(agent));
  const store = newStore();
  for (const _ of [1, 2]) {
    assert.deepEqual(await copySessions(dir, store), [`${id(1)}  6 messages  question 0`]);
    const key = { projectKey: await projectOf(), sessionId: id(1) };
    assert.deepEqual(await store.load(key), main);
    assert.deepEqual(await store.listSubkeys(key), ["subagents/agent-a1b2c3"]);
    assert.deepEqual(await store.load({ ...key, subpath: "subagents/agent-a1b2c3" }), agent);
  }
});
