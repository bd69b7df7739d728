import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { prune } from "../prune.ts";
import { AgentSchema } from "@gen/stet/v1/cloudagent_service_pb";

const gen = process.env.STET_GEN!;

test("what the page never reads is not described", () => {
  const whole = readFileSync(`${gen}/stet/v1/conversation_service_pb.ts`, "utf8");
  const less = prune(whole);
  assert.ok(less.length < whole.length);
  assert.match(less, /fileDesc\("[^"]+", \[file_stet_v1_common\]\)/);
  assert.throws(() => prune("nothing"));
});

test("messages without some of their fields are still read", () => {
  const agent = create(AgentSchema, { id: "a", name: "n", status: 1, turns: 3 });
  const back = fromBinary(AgentSchema, toBinary(AgentSchema, agent));
  assert.equal(back.status, 1);
  assert.equal(back.turns, 3);
});
