import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { Server, find, launch, open } from "./harness.mjs";
import { tryAddress } from "./lines.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let server, browser;

before(async () => {
  server = await Server.start();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** Each view, what shows that it is there, and what to do first. */
function views(retry, prices, tried) {
  const at = server.address;
  return [
    ["home", `${at}/`, "a.row"],
    ["conversation", retry, ".turn .message"],
    ["files", `${retry}/files?path=checkout%2Fretry.go`, ".code .mark"],
    ["diff", `${retry}/diff`, ".diff-line, .diff-pair"],
    ["blame of a diff", `${retry}/diff?against=now`, ".diff-line, .diff-pair", async (page) => {
      await page.getByRole("button", { name: "Blame" }).click();
      await page.locator(".diff a.mark").first().waitFor();
    }],
    ["try", `${tried}?path=lib.txt`, ".hunks .diff-line"],
    ["subagents", `${prices}/subagents`, ".turn .message"],
    ["state", `${retry}/state`, ".node"],
    ["raw", `${retry}/raw`, ".raw-line"],
    ["compare", `${at}/compare?c=${new URL(retry).pathname.slice(3)}`, ".diff-line, .diff-pair"],
    ["live", `${at}/live/demo-live`, ".events .item"],
    ["search", `${at}/search?q=retry`, "a.hit"],
    ["empty search", `${at}/search`, ".empty"],
    ["storage", `${at}/storage`, ".plot canvas"],
    ["operations", `${at}/operations`, ".operation"],
    ["missing", `${at}/c/none`, ".empty"],
    ["rewind", retry, ".point-link", async (page) => {
      await page.locator(".point-link", { hasText: "write tests" }).click();
      await page.keyboard.press("r");
      await page.locator(".chooser").first().waitFor();
    }],
    ["export and resume", retry, ".actions", async (page) => {
      await page.locator(".actions summary").click();
      await page.locator(".actions .menu-items").waitFor();
    }],
    ["keys", `${at}/`, "a.row", async (page) => {
      await page.keyboard.press("?");
      await page.locator("dialog[open]").waitFor();
    }],
  ];
}

for (const colorScheme of ["light", "dark"]) {
  test(`no view has barriers, in ${colorScheme} colours`, async () => {
    const page = await open(browser, server, { colorScheme });
    const retry = await find(page, server, "add retry to checkout");
    const prices = await find(page, server, "slow query");
    const tried = await tryAddress(page, server);
    const found = [];
    for (const [name, url, there, first] of views(retry, prices, tried)) {
      await page.goto(url);
      await page.locator(there).first().waitFor();
      await first?.(page);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      for (const v of violations) found.push(`${name}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} (${n.failureSummary?.split("\n")[1] ?? ""})`).join(" | ")}`);
    }
    assert.deepEqual(found, []);
    assert.deepEqual(page.wrong, []);
    await page.context().close();
  });
}
