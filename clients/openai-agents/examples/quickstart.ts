// Keeps items of a session, and reads the last one as another process would.
//
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=$(cat ~/.local/share/stet/token) node quickstart.js
import { StetSession } from "@stet-dev/openai-agents";

const address = process.env["STET_URL"] ?? "http://127.0.0.1:7717";
const token = process.env["STET_TOKEN"] ?? "";

await StetSession.connect(address, token, { sessionId: "trip" }).addItems([
  { role: "user", content: "Where is Oslo?" },
  { role: "assistant", status: "completed", content: [{ type: "output_text", text: "In Norway." }] },
]);
console.log(await StetSession.connect(address, token, { sessionId: "trip" }).getItems(1));
