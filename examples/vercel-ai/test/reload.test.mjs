// Drives the chat in a browser. In the middle of an answer the page is reloaded, and the
// chat's server and stet are killed; all words are there at the end, each once. STET_BIN is
// the command line of stet, STET_CHROMIUM the browser.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "../../../web/app/node_modules/playwright-core/index.mjs";
import { script } from "../model.mjs";
import { Chat, Gate, Server } from "./processes.mjs";

const question = "count to 60";
const whole = script(question);
const said = (count) => whole.split(" ").slice(0, count).join(" ");

let dir, gate, server, chat, browser, context;
/** What pages showed that is not the beginning of the answer. */
const wrong = [];

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "stet-vercel-ai-"));
  gate = await new Gate().start();
  server = await new Server(dir).start();
  chat = await new Chat(server, gate).start();
  browser = await chromium.launch({ executablePath: process.env.STET_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  context = await browser.newContext();
  await context.exposeFunction("wrong", (text) => wrong.push(text));
  await context.addInitScript((whole) => {
    const check = () => {
      for (const p of document.querySelectorAll("p.assistant")) if (!whole.startsWith(p.textContent)) globalThis.wrong(p.textContent);
    };
    new MutationObserver(check).observe(document, { subtree: true, childList: true, characterData: true });
  }, whole);
});

after(async () => {
  await browser?.close();
  await chat?.kill();
  await server?.kill();
  gate?.http.closeAllConnections();
  gate?.http.close();
  await rm(dir, { recursive: true });
});

/** Waits until a page shows texts, in this order. */
async function shows(page, ...texts) {
  await page.waitForFunction((texts) => {
    const shown = [...document.querySelectorAll("p")].map((p) => p.textContent);
    return JSON.stringify(shown) === JSON.stringify(texts);
  }, texts);
}

/** Lets the model go on until a page shows so many words. */
async function reach(page, words) {
  for (;;) {
    const text = await page.evaluate(() => document.querySelector("p.assistant")?.textContent ?? "");
    const count = text === "" ? 0 : text.split(" ").length;
    if (count >= words) {
      return;
    }
    await gate.word();
    await page.waitForFunction((text) => (document.querySelector("p.assistant")?.textContent ?? "").length > text.length, text);
  }
}

test("an answer survives reloads, and the deaths of the servers, word by word", { timeout: 240_000 }, async (t) => {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(chat.address);
  await page.fill("input", question);
  await page.keyboard.press("Enter");
  await reach(page, 5);

  await t.test("a reload shows what was said, and the rest comes", async () => {
    await page.reload();
    await shows(page, question, said(5));
    await reach(page, 8);
  });

  await t.test("reloads while words come", async () => {
    for (let n = 0; n < 4; n++) {
      await gate.word();
      await page.reload();
    }
    await shows(page, question, said(12));
    await reach(page, 15);
  });

  await t.test("the chat's server is killed, the page stays", async () => {
    for (const words of [18, 21, 24]) {
      await gate.word(); // it may be said, or lost with the process
      await chat.kill();
      await chat.start();
      await reach(page, words);
    }
  });

  await t.test("the chat's server is killed, the page is reloaded meanwhile", async () => {
    const { href } = new URL(page.url());
    await chat.kill();
    await page.reload().catch(() => undefined); // the browser's own page of an error
    await chat.start();
    await page.goto(href);
    await reach(page, 30);
  });

  await t.test("stet is killed, the others stay", async () => {
    for (const words of [33, 36]) {
      await gate.word();
      await server.kill();
      await server.start();
      await reach(page, words);
    }
  });

  await t.test("a second tab shows the same, and both have the whole answer at the end", async () => {
    const tab = await context.newPage();
    await tab.goto(page.url());
    await reach(tab, 40);
    await chat.kill();
    await chat.start();
    await reach(page, 45);
    await reach(tab, 45);
    gate.open();
    await shows(page, question, whole);
    await shows(tab, question, whole);
    await tab.close();
  });

  await t.test("the next question is asked, and all is there after a reload", async () => {
    await page.locator("output[data-status=ready]").waitFor({ state: "attached" });
    await page.fill("input", "count to 7");
    await page.keyboard.press("Enter");
    await shows(page, question, whole, "count to 7", said(7));
    await page.reload();
    await shows(page, question, whole, "count to 7", said(7));
    const id = new URL(page.url()).searchParams.get("chat");
    await chat.kill(); // what is kept is kept in stet
    await chat.start();
    await page.reload();
    await shows(page, question, whole, "count to 7", said(7));
    const { messages } = await (await fetch(`${chat.address}api/chat/${id}`)).json();
    const texts = messages.map(({ parts }) => parts.map((part) => part.text ?? "").join(""));
    assert.deepEqual(texts, [question, whole, "count to 7", said(7)]);
  });

  assert.deepEqual(wrong, [], "a page showed something else than the beginning of the answer");
});
