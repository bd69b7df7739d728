// A conversation is saved twice, with a checkpoint after each save; the workspace
// is rewound, and that is undone; an agent is written to and followed to its end.
//
//   STET_TOKEN=… node dist/examples/scenario.js http://127.0.0.1:7717 /path/of/an/empty/directory
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { connect } from "../src/index.js";

const [, , address = "", workspace = ""] = process.argv;
const stet = connect(address, process.env["STET_TOKEN"] ?? "");
const { conversations, checkpoints, agents } = stet;

const talk = (await conversations.create({ id: "talk", title: "scenario", workspace, agent: "scenario" })).conversation;

async function save(...texts: string[]): Promise<void> {
  const turns = texts.map((text) => ({
    turn: {
      case: "agentConversationTurn",
      value: { userMessage: { text, messageId: `m-${text}` } },
    } as const,
  }));
  await conversations.save({
    id: "talk",
    epoch: talk?.epoch ?? 0n,
    state: { case: "inline", value: { turns } },
    messageId: `m-${texts.at(-1)}`,
  });
}

async function checkpoint(label: string): Promise<string> {
  const made = await checkpoints.create({ workspace, conversation: "talk", label, author: "scenario" });
  return made.checkpoint?.id ?? "";
}

await writeFile(join(workspace, "a.txt"), "one\n");
await save("hello");
const first = await checkpoint("first");
await writeFile(join(workspace, "a.txt"), "two\n");
await writeFile(join(workspace, "b.txt"), "new\n");
await save("hello", "again");
const second = await checkpoint("second");

const diff = await checkpoints.diff({ workspace, from: first, to: second, statOnly: true });
const wanted = { ref: first, workspace, conversation: "talk", files: true, withConversation: true };
const plan = await checkpoints.planRewind(wanted);
const rewound = await checkpoints.rewind({ plan: wanted, planToken: plan.planToken });
const undone = await checkpoints.undo({ workspace });

await agents.create({ id: "worker", name: "count", conversation: "talk" });
for (const text of ["one", "two", "three"]) {
  await agents.append("worker", [{ message: { case: "textDelta", value: { text } } }], text);
}
await agents.archive("worker");
const followed: string[] = [];
for await (const event of agents.follow("worker")) {
  if (event.kind === "update" && event.update.message.case === "textDelta") {
    followed.push(event.update.message.value.text);
  }
}

console.log(
  JSON.stringify({
    diff: diff.files.map((file) => `${file.path} +${file.added} -${file.removed}`),
    plan: plan.files.map((file) => `${file.action} ${file.path}`),
    rewound: rewound.files,
    undone: undone.files,
    followed,
  }),
);
