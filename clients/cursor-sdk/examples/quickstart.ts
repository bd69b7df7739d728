// Writes an agent and a run with two events, and reads them with another store, as a process
// on another machine would.
//
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=$(cat ~/.local/share/stet/token) node quickstart.js
import { StetLocalAgentStore } from "@stet-dev/cursor-sdk";

const { STET_URL: address = "http://127.0.0.1:7717", STET_TOKEN: token = "" } = process.env;
const collection = `example-${Date.now()}`;
const now = Date.now();

const before = StetLocalAgentStore.connect(address, token, { collection });
await before.agents.create({ agent: { agentId: "agent-1", cwd: "/work", status: "running", createdAt: now, updatedAt: now } });
await before.runs.create({ run: { runId: "run-1", agentId: "agent-1", turnNumber: 1, status: "running", createdAt: now, updatedAt: now } });
await before.runEvents.append({ runId: "run-1", eventType: "message", payload: "hello" });
await before.runEvents.append({ runId: "run-1", eventType: "message", payload: "world", idempotencyKey: "m2" });

const after = StetLocalAgentStore.connect(address, token, { collection });
await after.runEvents.append({ runId: "run-1", eventType: "message", payload: "world", idempotencyKey: "m2" }); // sent again: kept once
const { items } = await after.runEvents.list({ runId: "run-1" });
for (const { offset, payload } of items) {
  console.log(offset, payload);
}
