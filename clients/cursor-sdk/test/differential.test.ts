// Makes the same random calls of the store that the SDK opens by default, SqliteLocalAgentStore,
// and of ours, on the server at STET_URL with the token in STET_TOKEN. Every answer and every
// error must be the same. STET_CALLS is the number of calls, STET_SEED repeats a run.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import type { LocalAgentStore } from "@cursor/sdk";
import { SqliteLocalAgentStore } from "@cursor/sdk/sqlite";

import { Random } from "./random.js";
import { Script, everything, type Call } from "./script.js";
import { ours } from "./server.js";

const calls = Number(process.env.STET_CALLS ?? 300);
const seed = Number(process.env.STET_SEED ?? Date.now() % 2 ** 31);

/** Errors of SQLite that the SDK passes on, and what ours say. */
const sqliteErrors: [RegExp, RegExp][] = [
  [/^FOREIGN KEY constraint failed$/, /^Agent \S+ not found$/],
  [/^UNIQUE constraint failed: runs.run_id$/, /^Run \S+ already exists for agent \S+$/],
  [/^UNIQUE constraint failed: runs.agent_id, runs.turn_number$/, /^Turn \d+ already exists for agent \S+$/],
];

test(`${calls} calls have the same answers from both stores, seed ${seed}`, async () => {
  const dir = await mkdtemp(join(tmpdir(), "stet-cursor-sdk-"));
  const theirs = await SqliteLocalAgentStore.open({ workspaceRef: "/projects/a", stateRoot: dir });
  const store = ours(`differential-${seed}-${process.pid}`);
  const script = new Script(new Random(seed));
  try {
    const seen = new Map<string, number>();
    for (let n = 1; n <= calls; n++) {
      const call = script.next();
      const [want, got] = await Promise.all([answer(theirs, call), answer(store, call)]);
      const about = `call ${n} of seed ${seed}: ${call.name} ${JSON.stringify(call.input)}`;
      same(got, want, about);
      const kind = `${call.name} ${want.error === undefined ? "answered" : "refused"}`;
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
      if (want.error === undefined) {
        script.saw(call, want.value);
      }
      if (call.name === "agents.delete" || n % 500 === 0 || n === calls) {
        const all = await everything(theirs);
        assert.deepEqual(masked(await everything(store)), masked(all), `what the stores have after ${about}`);
        script.agents.clear();
        for (const { agentId } of (all as { agents: { agentId: string }[] }).agents) {
          script.agents.add(agentId);
        }
      }
    }
    console.log(`seed ${seed}: ${calls} calls, no difference: ${[...seen].sort().map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
  } finally {
    await theirs.dispose();
    await rm(dir, { recursive: true });
  }
});

interface Answer {
  value?: unknown;
  error?: string;
}

async function answer(store: LocalAgentStore, call: Call): Promise<Answer> {
  try {
    return { value: await call.run(store) };
  } catch (error) {
    assert.ok(error instanceof Error);
    return { error: error.message };
  }
}

function same(got: Answer, want: Answer, about: string): void {
  const known = sqliteErrors.find(([theirs]) => theirs.test(want.error ?? ""));
  if (known !== undefined) {
    assert.match(got.error ?? "no error", known[1], `${about}: ${want.error}`);
    return;
  }
  assert.deepEqual(masked(got), masked(want), about);
}

/** Leaves out when events were appended, which each store takes from the clock, and the class of bytes. */
function masked(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    return Buffer.from(value).toString("hex");
  }
  if (Array.isArray(value)) {
    return value.map(masked);
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([name, part]) => [name, masked(part)] as const);
    const fields = Object.fromEntries(entries);
    return "seq" in fields && typeof fields.createdAt === "number" ? { ...fields, createdAt: "now" } : fields;
  }
  return value;
}
