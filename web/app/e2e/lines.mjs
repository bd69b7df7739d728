// Tests of the pages that say where lines came from, and of the attempts of a try.
import assert from "node:assert/strict";
import { test } from "node:test";
import { find } from "./harness.mjs";

/** tryAddress returns the address of the page of the try that the store has. */
export async function tryAddress(page, server) {
  await page.goto(await find(page, server, "attempts.sh"));
  const link = page.locator(".facts a", { hasText: /^try / });
  await link.waitFor();
  return server.address + (await link.getAttribute("href"));
}

/** linesTests adds the tests; given returns the server, the browser and what the page shows. */
export function linesTests(given) {
  test("the gutter of a file says which turn and prompt a line came from", async () => {
    const { page, retry } = given();
    await page.goto(`${retry}/files?path=checkout%2Fretry_test.go`);
    const marks = page.locator(".gutter .mark");
    await marks.first().waitFor();
    assert.match(await marks.first().innerText(), /^c\d+ claude-code turn 2$/);
    // Each mark is as high as its lines.
    const [first, second] = [await marks.nth(0).boundingBox(), await marks.nth(1).boundingBox()];
    const numbers = await page.locator(".code .numbers").boundingBox();
    const line = await page.locator(".code .numbers").evaluate((e) => parseFloat(getComputedStyle(e).lineHeight));
    assert.ok(Math.abs(first.y - (numbers.y + 8)) < 1.5 && Math.abs(second.y - first.y - 14 * line) < 1.5, JSON.stringify({ first, second, numbers }));
    await marks.first().hover();
    const words = page.locator(".picked");
    await words.waitFor();
    assert.match(await words.innerText(), /lines 1–14 .* claude-code .* turn 2 · “write tests for it” · call \d+: Write/);
    await page.keyboard.press("b"); // and it stays away
    await marks.first().waitFor({ state: "detached" });
    await page.reload();
    await page.locator(".code span.k", { hasText: "package" }).waitFor();
    assert.equal(await marks.count(), 0);
    await page.getByRole("button", { name: "Blame" }).click();
    await marks.first().waitFor();
    // A mark leads to its turn.
    await page.locator(".gutter a.mark", { hasText: "turn 3" }).first().click();
    await page.locator("#turn-3.wanted").waitFor();
    // A file of the user has marks without a turn.
    await page.goto(`${retry}/files?path=README.md`);
    await marks.first().waitFor();
    assert.match(await marks.first().innerText(), /^c1 you$/);
  });

  test("the gutter of a diff says who wrote the lines of both sides", async () => {
    const { page, server } = given();
    const both = await find(page, server, "changed by both");
    await page.goto(`${both}/diff`);
    await page.locator(".diff-line.del").first().waitFor();
    assert.equal(await page.locator(".diff .mark").count(), 0);
    await page.getByRole("button", { name: "Blame" }).click();
    const added = page.locator(".diff-line.add", { hasText: "agent two" }).locator(".mark");
    await added.filter({ hasText: /turn 1/ }).waitFor();
    const removed = page.locator(".diff-line.del").first().locator(".mark");
    await removed.filter({ hasText: /^c1 you$/ }).waitFor();
    await page.keyboard.press("s");
    await page.locator(".half.add .mark", { hasText: /^c2$/ }).first().waitFor();
    await page.keyboard.press("s");
    await page.keyboard.press("b");
    await page.locator(".diff .mark").first().waitFor({ state: "detached" });
  });

  test("lines whose history is forgotten say so", async () => {
    const { page, server } = given();
    const forgotten = await find(page, server, "mostly forgotten");
    await page.goto(`${forgotten}/files?path=a.txt`);
    await page.locator(".gutter .mark", { hasText: "no longer kept" }).waitFor();
    const imported = await find(page, server, "from the editor");
    await page.goto(`${imported}/files?path=a.txt`);
    await page.locator(".blame-note", { hasText: "was imported" }).waitFor();
    await page.locator(".code").waitFor(); // the file itself is shown
  });

  test("the attempts of a try are compared side by side", async () => {
    const { page, browser, server } = given();
    const address = await tryAddress(page, server);
    await page.goto(address);
    const table = page.locator(".results-table").first();
    await table.waitFor();
    assert.match(await table.locator("thead").innerText(), /Attempt 1\s+Attempt 2 best\s+Attempt 3/);
    const row = async (name) => (await table.locator("tr", { has: page.locator("th", { hasText: name }) }).innerText()).split(/\t|\n/).slice(1);
    assert.deepEqual(await row("Result"), ["succeeded", "succeeded", "exit code 3"]);
    assert.deepEqual(await row("Score"), ["1", "2", "3"]);
    assert.match((await row("To take it")).join(" "), /stet adopt try-[a-z0-9]+-2/);
    // Which attempt changed which file, and how.
    const files = page.locator(".files-table tbody tr");
    await files.nth(1).waitFor();
    assert.deepEqual((await files.allInnerTexts()).map((t) => t.replace(/\s+/g, " ").trim()), ["lib.txt +1 −1 +1 −1 +1 −1", "new.txt – +1 –"]);
    await page.getByRole("button", { name: "lib.txt" }).click();
    await page.locator('section[aria-label="Attempt 2: lib.txt"] .diff-line.add', { hasText: "lib of attempt 2" }).waitFor();
    await page.getByRole("button", { name: "new.txt" }).click();
    await page.locator('section[aria-label="Attempt 1: new.txt"]', { hasText: "Unchanged." }).waitFor();
    assert.match(page.url(), /path=new.txt/);
    // What each printed, or what its agent said. A turn leads to the agent's conversation.
    await page.locator(".attempt-words", { hasText: "attempt 3 prints" }).waitFor();
    await page.locator(".attempt-words", { hasText: "asked 2" }).getByLabel("Link to turn 2").click();
    await page.locator("h1", { hasText: "words of an attempt" }).waitFor();
    await page.locator("#turn-2.wanted").waitFor();
    assert.match(page.url(), /\/c\/[^/]+\?turn=2$/);
    const narrow = await (await browser.newContext({ viewport: { width: 390, height: 844 } })).newPage();
    await narrow.goto(`${server.address}/#${server.token}`);
    await narrow.locator("a.row").first().waitFor();
    await narrow.goto(`${address}?path=lib.txt`);
    await narrow.locator(".hunks .diff-line.add").first().waitFor();
    assert.equal(await narrow.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
    await narrow.context().close();
    await page.goto(`${server.address}/try/none`);
    await page.getByText("This try does not exist").waitFor();
  });
}
