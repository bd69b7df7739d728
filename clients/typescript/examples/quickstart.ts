// Saves a conversation, reads it back, and keeps some bytes.
//
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=$(cat ~/.local/share/stet/token) node quickstart.js
import { connect } from "@stet-dev/client";

const stet = connect(process.env["STET_URL"] ?? "http://127.0.0.1:7717", process.env["STET_TOKEN"] ?? "");

const { conversation: talk } = await stet.conversations.create({ title: "add retry" });
const turn = { case: "agentConversationTurn", value: { userMessage: { text: "add retry to checkout" } } } as const;
await stet.conversations.save({ id: talk!.id, epoch: talk!.epoch, state: { case: "inline", value: { turns: [{ turn }] } } });
for (const message of (await stet.conversations.transcript({ id: talk!.id })).messages) {
  console.log(`${message.role}: ${message.text}`);
}

const id = await stet.blobs.put(new TextEncoder().encode("hello")); // its SHA-256, checked on both ways
console.log(new TextDecoder().decode(await stet.blobs.get(id)));
