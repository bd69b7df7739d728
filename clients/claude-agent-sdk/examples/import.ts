// Copies the local sessions of a directory into a stet server, and lists what is there.
//
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=… node dist/examples/import.js DIRECTORY
//
// Each entry is kept once, however often it is copied.
import { pathToFileURL } from "node:url";

import { getSessionMessages, importSessionToStore, listSessions } from "@anthropic-ai/claude-agent-sdk";

import { StetSessionStore } from "../src/index.js";

/** Copies the sessions of a directory, and returns a line for each session in the server. */
export async function copySessions(dir: string, sessionStore: StetSessionStore): Promise<string[]> {
  for (const { sessionId } of await listSessions({ dir })) {
    await importSessionToStore(sessionId, sessionStore, { dir });
  }
  const lines = [];
  for (const { sessionId, summary } of await listSessions({ dir, sessionStore })) {
    const messages = await getSessionMessages(sessionId, { dir, sessionStore });
    lines.push(`${sessionId}  ${messages.length} messages  ${summary}`);
  }
  return lines;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { STET_URL = "http://127.0.0.1:7717", STET_TOKEN = "" } = process.env;
  const sessionStore = StetSessionStore.connect(STET_URL, STET_TOKEN);
  console.log((await copySessions(process.argv[2] ?? process.cwd(), sessionStore)).join("\n"));
}
