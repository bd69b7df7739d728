// Talks to an agent twice. The second time it is another object, as after a restart, and the
// agent is given what was said before.
//
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=… node dist/examples/resume.js
//
// A scripted model stands for the real one, so it needs no key and no network.
import { pathToFileURL } from "node:url";

import { Agent, run } from "@openai/agents-core";
import { ScriptedModel, assistantMessage } from "@openai/agents-core/testing";

import { StetSession } from "../src/index.js";

/** Asks two questions, each with a session of its own making, and returns how much the model was shown. */
export async function talk(open: () => StetSession): Promise<string[]> {
  const model = new ScriptedModel([[assistantMessage("Oslo is in Norway.")], [assistantMessage("About 700,000 people.")]]);
  const agent = new Agent({ name: "Guide", model });
  const lines = [];
  for (const question of ["Where is Oslo?", "How many people live there?"]) {
    const { finalOutput } = await run(agent, question, { session: open() });
    const { input } = model.calls.at(-1)!.request;
    lines.push(`${question} ${finalOutput} (${input.length} items)`);
  }
  return lines;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { STET_URL = "http://127.0.0.1:7717", STET_TOKEN = "" } = process.env;
  const sessionId = `trip-${Date.now()}`;
  console.log((await talk(() => StetSession.connect(STET_URL, STET_TOKEN, { sessionId }))).join("\n"));
}
