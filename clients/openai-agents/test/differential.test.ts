// The same random calls give the same results with the SDK's own session in memory.
import assert from "node:assert/strict";
import { test } from "node:test";

import { MemorySession, type AgentInputItem, type SessionHistoryTransaction } from "@openai/agents-core";

import type { StetSession } from "../src/index.js";
import { newSession } from "./server.js";

/** Returns random numbers that are the same in each run. */
function generator(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

type Call = [name: string, run: (session: StetSession | MemorySession) => unknown];

/** Makes random calls. */
class Script {
  private made = 0;
  private readonly operations: Array<{ operationId: string; transaction: SessionHistoryTransaction }> = [];

  constructor(private readonly random: () => number) {}

  /** Returns a call for a session that has some items. */
  next(known: AgentInputItem[]): Call {
    const kind = this.below(100);
    if (kind < 35) {
      const items = this.items(this.below(40) === 0 ? 150 : this.below(5));
      return [`addItems ${items.length}`, (s) => s.addItems(items)];
    }
    if (kind < 55) {
      return ["popItem", (s) => s.popItem()];
    }
    if (kind < 75) {
      const limit = [undefined, undefined, 0, -1, 1, 2, 2.5, 7, 1000, NaN, Infinity][this.below(11)];
      return [`getItems ${limit}`, (s) => s.getItems(limit)];
    }
    if (kind < 76) {
      return ["clearSession", (s) => s.clearSession()];
    }
    if (kind < 85) {
      const mutations = Array.from({ length: this.below(3) }, () => {
        const callId = `call ${this.below(6)}`;
        return { type: "replace_function_call" as const, callId, replacement: this.call(callId) };
      });
      return [`applyHistoryMutations ${mutations.map((m) => m.callId)}`, (s) => s.applyHistoryMutations({ mutations })];
    }
    const args = this.transaction(known);
    return [`applyHistoryTransaction ${JSON.stringify(args)}`, (s) => s.applyHistoryTransaction(args)];
  }

  private transaction(known: AgentInputItem[]): { operationId: string; transaction: SessionHistoryTransaction } {
    const earlier = this.operations[this.below(this.operations.length)];
    if (earlier !== undefined && this.below(4) === 0) {
      return earlier;
    }
    const operationId = earlier !== undefined && this.below(8) === 0 ? earlier.operationId : this.below(30) === 0 ? " " : `operation ${this.made++}`;
    const wrong = this.below(8) === 0;
    const expectedSuffix = wrong ? this.items(1) : known.slice(known.length - this.below(Math.min(5, known.length + 1)) || known.length);
    const transaction: SessionHistoryTransaction =
      this.below(2) === 0
        ? { type: "append_items", items: this.items(this.below(4)) }
        : { type: "replace_suffix", expectedSuffix, replacement: this.items(this.below(4)) };
    const args = { operationId, transaction: this.below(20) === 0 ? Object.assign({ more: 1 }, transaction) : transaction };
    this.operations.push(args);
    return args;
  }

  private items(count: number): AgentInputItem[] {
    return Array.from({ length: count }, () => this.item());
  }

  private item(): AgentInputItem {
    const n = this.made++;
    switch (this.below(5)) {
      case 0:
        return this.call(`call ${this.below(6)}`);
      case 1:
        return { type: "function_call_result", name: "tool", callId: `call ${this.below(6)}`, status: "completed", output: { type: "text", text: `out ${n}` } };
      case 2:
        return { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: `ünïcode ${n}\n"\u2028` }] };
      case 3:
        return { role: "user", content: `question ${n}`, providerData: { n, deep: [{ x: null, y: [1.5, true, ""] }], $bytes: "no", only: { $bytes: "x" } } };
      default:
        return { role: "user", content: [{ type: "input_image", image: "data:image/png;base64,AA==" }], providerData: { raw: new Uint8Array([n & 255, 0, 255]) } };
    }
  }

  private call(callId: string): Extract<AgentInputItem, { type: "function_call" }> {
    return { type: "function_call", name: "tool", callId, status: "completed", arguments: `{"n":${this.made++}}` };
  }

  private below(n: number): number {
    return Math.floor(this.random() * n);
  }
}

async function result(call: Call, session: StetSession | MemorySession): Promise<unknown> {
  try {
    return { value: await call[1](session) };
  } catch (error) {
    return { error: (error as Error).name, message: (error as Error).message };
  }
}

test("random calls give what they give with the session in memory", async () => {
  const calls = Number(process.env["STET_CALLS"] ?? 200);
  const seen = { calls: 0, errors: 0 };
  for (let seed = 1; seen.calls < calls; seed++) {
    const script = new Script(generator(seed));
    const [ours, theirs] = [newSession(), new MemorySession()];
    for (let n = 0; n < 200; n++) {
      const call = script.next(await theirs.getItems());
      const want = await result(call, theirs);
      assert.deepStrictEqual(await result(call, ours), want, `seed ${seed}, call ${n}: ${call[0]}`);
      seen.calls += 1;
      seen.errors += "error" in (want as object) ? 1 : 0;
    }
    assert.deepStrictEqual(await ours.getItems(), await theirs.getItems());
  }
  assert.ok(seen.errors > 0, "no call failed");
});
