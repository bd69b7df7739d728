// The server of the chat: its page, its messages, and the answers that are being written.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import { pipeUIMessageStreamToResponse } from "ai";
import { build } from "esbuild";

import { Answers } from "./answers.mjs";
import { countingModel } from "./model.mjs";
import { Chats, Stet } from "./stet.mjs";

const { STET_URL = "http://127.0.0.1:7717", STET_TOKEN, PORT = "3000", WORD_GATE } = process.env;
if (STET_TOKEN === undefined) {
  throw new Error("STET_TOKEN is not set; stet serve prints the file that has the token");
}

/** The model says a word every 300 ms or, for tests, when a server says so. */
async function ready(signal) {
  if (WORD_GATE === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 300));
  } else {
    await (await fetch(WORD_GATE, { signal })).text();
  }
}

const stet = new Stet(STET_URL, STET_TOKEN);
const chats = new Chats(stet);
const answers = new Answers(stet, chats, countingModel(ready));

const page = `<!doctype html><meta charset="utf-8"><title>Chat</title><link rel="icon" href="data:,">
<style>body{font:16px/1.5 system-ui;max-width:40rem;margin:2rem auto;padding:0 1rem}.user{font-weight:600}input{width:100%;font:inherit}</style>
<div id="root"></div><script type="module" src="/page.js"></script>`;

const bundle = await build({
  entryPoints: [fileURLToPath(new URL("page.jsx", import.meta.url))],
  bundle: true,
  write: false,
  format: "esm",
  jsx: "automatic",
  minify: true,
  define: { "process.env.NODE_ENV": '"production"' },
});

/** Sends the answer to a message from its beginning, as long as the client is there. */
async function follow(chat, message, response) {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const chunks = answers.to(chat, message).follow(gone.signal);
  await pipeUIMessageStreamToResponse({ response, stream: ReadableStream.from(quiet(chunks, gone.signal)) });
}

/** A client that leaves is not an error. */
async function* quiet(chunks, signal) {
  try {
    yield* chunks;
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  }
}

async function handle(request, response) {
  const { pathname } = new URL(request.url, "http://localhost");
  const [api, kind, chat, action, message] = pathname.split("/").slice(1).map(decodeURIComponent);
  if (pathname === "/page.js") {
    response.setHeader("Content-Type", "text/javascript").end(bundle.outputFiles[0].contents);
  } else if (api !== "api") {
    response.setHeader("Content-Type", "text/html").end(page);
  } else if (request.method === "POST" && kind === "chat") {
    const asked = JSON.parse(await text(request));
    await answers.ask(asked.id, asked.message);
    await follow(asked.id, asked.message.id, response);
  } else if (action === "stream") {
    if (await answers.to(chat, message).exists()) {
      await follow(chat, message, response);
    } else {
      response.writeHead(204).end(); // the message never arrived
    }
  } else {
    const { messages } = await chats.load(chat);
    response.setHeader("Content-Type", "application/json").end(JSON.stringify({ messages }));
  }
}

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(`${request.method} ${request.url}: ${error.message}`);
    if (response.headersSent) {
      response.destroy();
    } else {
      response.writeHead(400).end(error.message);
    }
  });
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
await answers.carryOn();
