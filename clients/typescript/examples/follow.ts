// Writes to an agent and follows it at the same time.
//
//   npm ci && npm run build
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=$(cat ~/.local/share/stet/token) node dist/examples/follow.js
import { connect } from "../src/index.js";

const stet = connect(process.env["STET_URL"] ?? "http://127.0.0.1:7717", process.env["STET_TOKEN"] ?? "");
const agent = await stet.agents.create({ name: "count to five" });

async function work(): Promise<void> {
  for (let n = 1; n <= 5; n++) {
    const update = { message: { case: "textDelta", value: { text: `${n}\n` } } } as const;
    await stet.agents.append(agent.id, [update], `step ${n}`);
  }
  await stet.agents.archive(agent.id);
}

const working = work();
for await (const event of stet.agents.follow(agent.id)) {
  if (event.kind === "update" && event.update.message.case === "textDelta") {
    process.stdout.write(event.update.message.value.text);
  }
}
await working;
