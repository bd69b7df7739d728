import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, find, launch, open } from "./harness.mjs";
import { linesTests } from "./lines.mjs";

let server, browser, page, retry, prices;

before(async () => {
  server = await Server.start();
  browser = await launch();
  page = await open(browser, server);
  retry = await find(page, server, "add retry to checkout");
  prices = await find(page, server, "slow query");
});

after(async () => {
  await browser?.close();
  await server?.stop();
  assert.deepEqual(page.wrong, []);
  assert.deepEqual(page.foreign, [], "a request left the machine");
  assert.ok(!server.log.includes(server.token), "the token is in the log");
});

const text = (selector) => page.locator(selector).first().innerText();
const shop = () => join(process.env.STET_STORE + "-demo", "shop-api");

test("the page asks for the token and then shows the link", async () => {
  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(retry);
  await other.fill("#token", "wrong");
  await other.click("button");
  await other.getByText("does not accept that token").waitFor();
  await other.goto(`${retry}#${server.token}`); // changes only the hash
  await other.locator("h1", { hasText: "add retry to checkout" }).waitFor();
  assert.equal(other.url(), retry);
  assert.deepEqual(await context.cookies(), [], "other servers of this host would get a cookie, too");
  const tab = await context.newPage(); // gets the token from the first
  await tab.goto(retry);
  await tab.locator("h1", { hasText: "add retry to checkout" }).waitFor();
  const alone = await browser.newContext();
  const stranger = await alone.newPage();
  await stranger.goto(retry);
  await stranger.locator("#token").waitFor();
  await alone.close();
  const call = await context.request.post(`${server.address}/stet.v1.StoreService/Info`, { headers: { cookie: `stet=${server.token}`, "content-type": "application/json" }, data: "{}" });
  assert.equal(call.status(), 401);
  await context.close();
});

test("home lists running agents and conversations by day", async () => {
  await page.goto(server.address + "/");
  await page.locator(".agent-card", { hasText: "tidy the search module" }).waitFor();
  const days = await page.locator("h2.day").allInnerTexts();
  assert.ok(days.length >= 2, days.join());
  const row = page.locator("a.row", { hasText: "add retry to checkout" });
  assert.match(await row.innerText(), /claude-code[\s\S]*3 turns[\s\S]*files[\s\S]*\+\d+/);
  assert.match(await row.locator("time").getAttribute("title"), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  await row.locator(".size", { hasText: /B$/ }).waitFor();
  assert.equal(await row.locator(".model").innerText(), "claude-opus-4-5");
  await page.fill(".filter", "price codex");
  await page.locator("a.row").nth(1).waitFor({ state: "detached" });
  assert.equal(await page.locator("a.row").count(), 1);
  // The subagent is below the conversation that started it.
  await page.getByRole("button", { name: "1 subagent" }).click();
  await page.locator("a.row.subagent", { hasText: "Where are prices read" }).waitFor();
  await page.getByRole("button", { name: "1 subagent" }).click();
  await page.locator("a.row.subagent").waitFor({ state: "detached" });
  await page.fill(".filter", "nothing like this");
  await page.getByText("No matches").waitFor();
});

test("home is sorted by columns, grouped, and hides empty runs", async () => {
  await page.goto(server.address + "/");
  await page.locator("a.row").first().waitFor();
  const titles = () => page.locator("a.row .title").allInnerTexts();
  await page.getByLabel("Group by").selectOption("none");
  await page.locator("h2.day").first().waitFor({ state: "detached" });
  await page.locator(".row-head").getByRole("button", { name: "Turns" }).click();
  await page.locator("a.row").first().filter({ hasText: "ten thousand turns" }).waitFor();
  await page.locator(".row-head").getByRole("button", { name: "Conversation" }).click();
  await page.waitForURL(/sort=title-up/);
  const sorted = (await titles()).filter((t) => /^[a-z]/.test(t));
  assert.deepEqual(sorted, [...sorted].sort());
  await page.goto(`${server.address}/?group=agent`);
  await page.locator("h2.day", { hasText: "claude-code" }).waitFor();
  await page.getByLabel("Group by").selectOption("project");
  await page.locator("h3.place", { hasText: "shop-api" }).waitFor();
  assert.equal(await page.locator("h3.place", { hasText: "shop-api" }).count(), 1);
  // A run that changed nothing is not in the way.
  assert.equal(await page.locator("a.row", { hasText: "/bin/true" }).count(), 0);
  await page.getByRole("button", { name: "show 1 empty run" }).click();
  await page.locator("a.row", { hasText: "/bin/true" }).waitFor();
});

test("home names conversations that are damaged, and what to do", async () => {
  // The answer of a store with a damaged row: field 3 is added, with an id and a detail.
  const field = (n, bytes) => Buffer.concat([Buffer.from([(n << 3) | 2, bytes.length]), bytes]);
  const damaged = field(3, Buffer.concat([field(1, Buffer.from("01torn")), field(2, Buffer.from("row 7 is damaged"))]));
  const overview = "**/stet.v1.PageService/Overview*";
  await page.route(overview, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ status: 200, contentType: "application/proto", body: Buffer.concat([await answer.body(), damaged]) });
  });
  await page.goto(server.address + "/");
  const line = page.locator(".damaged");
  await line.waitFor();
  assert.match(await line.innerText(), /1 conversation cannot be read: 01torn\. [\s\S]*stet --store \S+ fsck/);
  assert.equal(await line.locator("code[title]").getAttribute("title"), "row 7 is damaged");
  await page.locator("a.row", { hasText: "add retry to checkout" }).waitFor(); // the others are there
  await page.unroute(overview);
});

test("a conversation shows timeline, pins, forks and folded calls", async () => {
  await page.goto(retry);
  await page.locator(".turn").nth(2).waitFor();
  assert.equal(await page.locator(".point .tag.pin").innerText(), "before-timeout");
  assert.equal(await page.locator(".point.gone").count(), 1);
  assert.match(await text(".forks"), /retry with jitter/);
  const fold = page.locator("details.tool").first();
  assert.equal(await fold.getAttribute("open"), null);
  await fold.locator("summary").click();
  await fold.locator(".difftext .add").first().waitFor();
  await page.locator(".point-link", { hasText: "try a queue instead" }).click();
  await page.locator(".past", { hasText: "on a branch rewound" }).waitFor();
  await page.getByText("Orders now go through a queue").waitFor();
  await page.keyboard.press("u");
  await page.locator(".past").waitFor({ state: "detached" });
});

test("what can be done with a conversation is visible at once, with complete commands", async () => {
  await page.goto(retry);
  const actions = page.locator(".actions");
  for (const name of ["Rewind…", "Undo…", "Fork", "Resume…"]) await actions.getByRole("button", { name, exact: true }).waitFor();
  const saving = page.waitForEvent("download");
  await actions.locator("summary", { hasText: "Export" }).click();
  await actions.getByRole("button", { name: "md", exact: true }).click();
  assert.match(readFileSync(await (await saving).path(), "utf8"), /add retry to checkout/);
  // Without a selected checkpoint a rewind goes to before the newest, and can be sent elsewhere.
  await actions.getByRole("button", { name: "Rewind…" }).click();
  const sheet = page.locator("dialog.sheet");
  const place = `--store ${process.env.STET_STORE} -C ${shop()}`;
  await sheet.locator(".terminal code", { hasText: `stet ${place} rewind c` }).waitFor();
  await sheet.locator("select").selectOption({ label: await sheet.locator("option", { hasText: "write tests for it" }).innerText() });
  await sheet.locator(".verb.conflict").waitFor();
  await sheet.getByRole("button", { name: "Files only" }).click();
  await sheet.getByLabel("take the checkpoint's").check();
  await sheet.locator(".terminal code", { hasText: /rewind c\d+ --files --theirs$/ }).waitFor();
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  await actions.getByRole("button", { name: "Resume…" }).click();
  await page.locator("dialog", { hasText: "No agent has a session" }).getByText(`cd ${shop()}`).waitFor();
  await page.keyboard.press("Escape");
});

test("turns and conversations show model, tokens, cost and duration", async () => {
  await page.goto(retry);
  await page.locator(".turn-spent").first().waitFor();
  assert.equal(await page.locator(".turn-spent").first().innerText(), "claude-opus-4-5 · 45.2k tokens · $0.31 · 3 min");
  assert.match(await text(".facts"), /claude-opus-4-5[\s\S]*275\.5k tokens[\s\S]*\$1\.40[\s\S]*14 min/);
  const point = page.locator(".point .spent", { hasText: "61.1k tokens · $0.24 · 2 min" });
  await point.waitFor();
  assert.doesNotMatch(await point.innerText(), /claude/); // the facts name the model of all
  await page.goto(prices); // its agent does not say the cost
  await page.locator(".turn-spent").first().waitFor();
  assert.doesNotMatch(await text(".facts"), /\$/);
  await page.locator(".forks a", { hasText: "Where are prices read" }).click();
  await page.locator(".facts", { hasText: "subagent of" }).waitFor();
  assert.equal(await page.locator(".message .who").first().innerText(), "task");
});

test("a checkpoint is pinned and unpinned", async () => {
  await page.goto(retry);
  await page.locator(".point-link", { hasText: "add retry to checkout" }).click();
  await page.fill("#pin-name", "first-try");
  await page.keyboard.press("Enter");
  await page.locator(".tag.pin", { hasText: "first-try" }).waitFor();
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.locator(".tag.pin", { hasText: "first-try" }).waitFor({ state: "detached" });
});

test("files of a checkpoint are highlighted", async () => {
  await page.goto(`${retry}/files`);
  // A tree: each directory says how many files are below it.
  const folder = page.locator(".folder", { hasText: "checkout/" });
  await folder.waitFor();
  const below = Number(/(\d+) file/.exec(await folder.innerText())[1]);
  const all = Number(/Filter (\d+) file/.exec(await page.locator(".file-list input").getAttribute("placeholder"))[1]);
  await folder.click();
  await page.locator("a.file", { hasText: "retry.go" }).first().waitFor();
  assert.equal(await page.locator('a.file[title^="checkout/"]').count(), below);
  assert.ok(all > below);
  await page.locator('a.file[title="checkout/retry.go"]').click();
  await page.locator(".code span.k", { hasText: "package" }).waitFor();
  assert.match(page.url(), /path=checkout%2Fretry.go/);
  await page.reload(); // and what is above the file is open
  await page.locator(".code span.k", { hasText: "package" }).waitFor();
  await page.locator('a.file[aria-current="true"]', { hasText: "retry.go" }).waitFor();
  await page.fill(".file-list input", "RETRY_T");
  await page.locator(".file-count", { hasText: "1 file" }).waitFor();
  assert.equal(await page.locator("a.file").innerText().then((t) => t.split("\n")[0]), "checkout/retry_test.go");
});

test("a diff is reviewed file by file with the keyboard", async () => {
  await page.goto(`${retry}/diff`);
  await page.locator(".diff-line.add span.k").first().waitFor();
  await page.keyboard.press("s");
  await page.locator(".diff-pair").first().waitFor();
  await page.keyboard.press("n");
  await page.locator('.review-file[aria-current="true"]', { hasText: "timeout.go" }).waitFor();
  await page.keyboard.press("v");
  await page.getByText("1 of 2 seen").waitFor();
  await page.keyboard.press("s");
  await page.getByRole("link", { name: /and the files now/ }).click();
  await page.locator(".review-file", { hasText: "README.md" }).waitFor();
});

test("a diff of a hundred files shows all of them, and highlights those in view", async () => {
  const asked = [];
  const named = (name) => asked.filter((body) => body.includes(name)).length;
  let twice;
  const highlighted = new Promise((resolve) => (twice = resolve));
  const count = (r) => {
    if (!r.url().endsWith("/Diff")) return;
    asked.push(r.postDataBuffer()?.toString("latin1") ?? "");
    if (named("f099.go") === 2) twice();
  };
  page.on("request", count);
  await page.goto(`${await find(page, server, "a hundred files")}/diff`);
  await page.locator(".review-file").nth(99).waitFor();
  await page.locator(".diff-line.add", { hasText: "var changed = true" }).first().waitFor();
  await page.locator(".review-file", { hasText: "f099.go" }).click();
  await page.locator(".diff-file", { hasText: "f099.go" }).waitFor();
  await page.getByText("Loading…").first().waitFor({ state: "detached" });
  await highlighted; // the file in view is asked for plain and highlighted
  await page.locator(".diff-line span.k", { hasText: "var" }).first().waitFor();
  page.off("request", count);
  assert.equal(named("f050.go"), 1, "a file that was never in view is not highlighted");
});

linesTests(() => ({ server, browser, page, retry }));

test("subagents have their own transcript", async () => {
  await page.goto(prices);
  await page.locator("details.tool", { hasText: /where are prices/i }).locator("summary").click();
  await page.getByRole("link", { name: "What the subagent did" }).click();
  await page.getByText("asks the database once for").waitFor();
  assert.match(page.url(), /subagents\?sub=01a1d8b4-7d92-7c63-a1f8-5e3b0d9c4a87/);
});

test("the inspector walks from the state down to a blob and checks its hash", async () => {
  await page.goto(`${retry}/state`);
  await page.locator(".node.state").waitFor();
  assert.ok((await page.locator(".node").count()) > 10);
  await page.getByRole("button", { name: "check again here" }).click();
  await page.getByText("the hash matches").waitFor();
  await page.locator(".graph a:has(.node.turn)").first().click();
  await page.waitForURL(/\/inspect\/[0-9a-f]{64}/);
  await page.locator(".inspector-head h1", { hasText: "turn" }).waitFor();
  await page.locator(".graph a:has(.node.user-message)").first().click();
  await page.locator("table", { hasText: "text" }).waitFor();
  await page.goto(`${server.address}/inspect/${"0".repeat(64)}`);
  await page.locator(".trouble", { hasText: "Not found" }).waitFor();
});

test("raw lines can be read and saved", async () => {
  await page.goto(`${retry}/raw`);
  await page.locator(".raw-line").nth(3).waitFor();
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "md", exact: true }).click();
  const path = await (await saving).path();
  assert.match(readFileSync(path, "utf8"), /add retry to checkout/);
});

test("a comparison begins with two different points", async () => {
  await page.goto(`${server.address}/compare`);
  await page.locator(".side select").nth(1).waitFor();
  const points = async () => [await page.locator(".side select").nth(0).inputValue(), await page.locator(".side select").nth(1).inputValue()];
  for (const title of ["add retry to checkout", "notes as Markdown files", "the sync test is flaky"]) {
    await page.goto(`${server.address}/compare?c=${new URL(await find(page, server, title)).pathname.slice(3)}`);
    await page.locator(".side select").nth(1).waitFor();
    const [from, to] = await points();
    assert.notEqual(from, to, title);
  }
});

test("two checkpoints are compared", async () => {
  await page.goto(retry);
  await page.locator(".point-link", { hasText: "try a queue instead" }).click();
  await page.getByRole("link", { name: "Compare", exact: true }).last().click();
  await page.waitForURL(/compare\?/);
  await page.locator(".review-file", { hasText: "queue/worker.go" }).waitFor();
  await page.getByText("one of them is on a rewound branch").waitFor();
  await page.locator(".side select").nth(1).selectOption("@");
  await page.locator(".side", { hasText: "The current workspace" }).waitFor();
});

test("search finds messages and leads to their turn", async () => {
  await page.goto(server.address + "/");
  await page.locator("a.row").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("timeout");
  await page.keyboard.press("Enter");
  const hit = page.locator("a.hit", { hasText: "also cover the timeout" }).first();
  await hit.locator("mark").first().waitFor();
  await hit.click();
  await page.locator(".turn.wanted", { hasText: "also cover the timeout" }).waitFor();
  // A fork has the same messages: they are listed once.
  await page.goto(`${server.address}/search?q=retry`);
  await page.locator(".hit-group", { hasText: "add retry to checkout" }).waitFor();
  const found = page.locator(".found", { hasText: "turn 1 · you" });
  assert.equal(await found.count(), 1);
  await found.locator(".also a", { hasText: "retry with jitter" }).waitFor();
  assert.doesNotMatch(await page.locator(".results").innerText(), /@@|\+\+\+/, "diffs are readable");
  await page.locator(".found", { hasText: "turn 1 · Edit" }).locator("code").first().waitFor();
  assert.match(await page.locator(".page-head").innerText(), /\d+ messages? in \d conversations/);
  await page.goto(`${server.address}/search?q=zzzyyyxxx`);
  await page.getByText("No matches").waitFor();
});

test("storage shows plots, sizes and what a collection would remove", async () => {
  await page.goto(`${server.address}/storage`);
  await page.locator(".plot canvas").waitFor();
  // One conversation is years old: the plot shows the time in which the others are.
  const range = page.locator(".plot-head .segments");
  await range.getByRole("button", { name: /^Since .* 20\d\d$/, pressed: true }).waitFor();
  await range.getByRole("button", { name: "All time" }).click();
  await range.getByRole("button", { name: "All time", pressed: true }).waitFor();
  assert.match(await text(".figures"), /Deduplication\s+[\d.]+×/);
  await page.locator(".bars a", { hasText: "add retry to checkout" }).waitFor();
  await page.getByRole("button", { name: "Preview a collection" }).click();
  await page.getByText(/to keep\./).waitFor();
  await page.getByRole("button", { name: "Check the store" }).click();
  await page.getByText("are intact").waitFor();
});

test("a rewind does what its plan says, and is undone and redone", async () => {
  const file = join(shop(), "checkout", "timeout.go");
  const before = readFileSync(file, "utf8");
  await page.goto(retry);
  await page.locator(".point-link", { hasText: "write tests for it" }).click();
  await page.keyboard.press("r");
  const sheet = page.locator("dialog.sheet");
  await sheet.locator(".verb.conflict").waitFor();
  const go = sheet.getByRole("button", { name: "Rewind", exact: true });
  assert.ok(await go.isDisabled(), "a conflict needs a choice");
  assert.match(await sheet.innerText(), /Left alone[\s\S]*README\.md[\s\S]*\.git/);
  // Exactly the checkpoint's files: nothing is left to choose, and nothing is kept.
  await sheet.getByLabel("Exactly these files").check();
  await sheet.locator(".verb.conflict").waitFor({ state: "detached" });
  await sheet.locator(".plan-files code", { hasText: "README.md" }).waitFor();
  assert.match(await sheet.locator(".terminal").innerText(), /--exact/);
  assert.ok(await go.isEnabled());
  await sheet.getByRole("button", { name: "Conversation only" }).click();
  assert.ok(await sheet.getByLabel("Exactly these files").isDisabled(), "a conversation has no files");
  await sheet.getByRole("button", { name: "Files and conversation" }).click();
  await sheet.getByLabel("Exactly these files").uncheck();
  await sheet.locator(".verb.conflict").waitFor();
  await sheet.getByLabel("take the checkpoint's").check();
  await sheet.locator(".verb.delete + code", { hasText: "checkout/timeout.go" }).waitFor();
  await go.click();
  await page.locator(".notice", { hasText: "Rewound to" }).waitFor();
  assert.ok(!existsSync(file));
  await page.locator(".turn").nth(2).waitFor({ state: "detached" });
  await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
  await page.locator(".notice", { hasText: "Undone" }).waitFor();
  assert.equal(readFileSync(file, "utf8"), before);
  await page.goto(`${server.address}/operations`);
  await page.getByRole("button", { name: "Redo" }).waitFor();
  await page.keyboard.press("r");
  await page.locator("dialog").getByRole("button", { name: "Redo", exact: true }).click();
  await page.locator(".notice", { hasText: "Redone" }).waitFor();
  assert.ok(!existsSync(file));
  await page.locator(".operation", { hasText: "shop-api" }).getByRole("button", { name: "Undo" }).first().click();
  await page.locator("dialog").getByRole("button", { name: "Undo", exact: true }).click();
  await page.locator(".notice", { hasText: "Undone" }).waitFor();
  assert.equal(readFileSync(file, "utf8"), before);
});

test("a merge shows its result before it is done, and says why where it cannot be", async () => {
  const dir = process.env.STET_STORE + "-both";
  const read = (name) => readFileSync(join(dir, name), "utf8");
  const [a, made] = [read("a.txt"), read("made.txt")];
  await page.goto(await find(page, server, "changed by both"));
  await page.locator(".point-link").last().click();
  await page.locator(".actions").getByRole("button", { name: "Rewind…" }).click();
  const sheet = page.locator("dialog.sheet");
  const go = sheet.getByRole("button", { name: "Rewind", exact: true });
  await sheet.getByText("No merge: it was created, removed or replaced").waitFor();
  const of = (name) => sheet.locator(".plan-files li", { hasText: name });
  assert.ok(await of("made.txt").getByLabel("merge").isDisabled(), "it cannot be merged");
  await of("made.txt").getByLabel("keep mine").check();
  await of("a.txt").getByRole("radio", { name: "merge" }).check(); // its result has a label with the word, too
  await of("a.txt").locator(".tag", { hasText: "merged" }).waitFor();
  assert.match(await of("a.txt").locator(".hunks").innerText(), /agent two[\s\S]*line b[\s\S]*agent twenty[\s\S]*line t/);
  assert.match(await sheet.innerText(), /Conversation\s+It (stays as it is|starts over)/);
  await go.click();
  await page.locator(".notice", { hasText: "Rewound to" }).waitFor();
  assert.equal(read("a.txt"), a.replace("agent two", "line b").replace("agent twenty", "line t"));
  assert.equal(read("made.txt"), made);
  await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
  await page.locator(".notice", { hasText: "Undone" }).waitFor();
  assert.equal(read("a.txt"), a);
});

test("one hunk and one file are restored from the diff", async () => {
  const dir = process.env.STET_STORE + "-both";
  const read = (name) => readFileSync(join(dir, name), "utf8");
  const [a, made] = [read("a.txt"), read("made.txt")];
  await page.goto(`${await find(page, server, "changed by both")}/diff`);
  await page.locator(".point-link").filter({ has: page.locator("b", { hasText: /^c2$/ }) }).click();
  await page.waitForURL(/at=/);
  await page.locator(".diff-line.add", { hasText: "agent twenty" }).waitFor();
  await page.getByRole("button", { name: "Restore these lines…" }).nth(1).click();
  const sheet = page.locator("dialog.sheet");
  await sheet.locator(".hunks", { hasText: "agent twenty" }).waitFor();
  await sheet.getByRole("button", { name: "Restore", exact: true }).click();
  await page.locator(".notice", { hasText: "Restored lines of a.txt" }).waitFor();
  assert.equal(read("a.txt"), a.replace("agent twenty", "line t"), "the other lines stay");
  await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
  await page.locator(".notice", { hasText: "Undone" }).waitFor();
  assert.equal(read("a.txt"), a);
  await page.locator(".diff-file", { hasText: "made.txt" }).getByRole("button", { name: "Restore this file…" }).click();
  const go = sheet.getByRole("button", { name: "Restore", exact: true });
  await sheet.locator(".verb.conflict").waitFor();
  assert.ok(await go.isDisabled(), "a conflict needs a choice");
  await sheet.getByLabel("Exactly this version").check();
  await sheet.locator(".verb.delete + code", { hasText: "made.txt" }).waitFor();
  assert.match(await sheet.locator(".terminal").innerText(), /--store \S+ -C \S+ rewind c\d+ --exact -- made\.txt/);
  await go.click();
  await page.locator(".notice", { hasText: "Restored made.txt" }).waitFor();
  assert.ok(!existsSync(join(dir, "made.txt")));
  assert.equal(read("a.txt"), a, "other files stay");
  await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
  await page.locator(".notice", { hasText: "Undone" }).waitFor();
  assert.equal(read("made.txt"), made);
});

test("two rewound branches are drawn as two", async () => {
  await page.goto(await find(page, server, "rewound twice"));
  await page.locator(".point.gone").nth(1).waitFor();
  assert.equal(await page.locator(".point.gone").count(), 2);
  assert.equal(await page.locator(".point.gone .track.joins").count(), 2, "each joins the line by itself");
  assert.equal(await page.locator(".point.gone .track.branch-above").count(), 0, "none continues the other");
});

test("an imported checkpoint is shown, compared and gone back to", async () => {
  const dir = process.env.STET_STORE + "-imported";
  await page.goto(await find(page, server, "from the editor"));
  await page.locator(".point-link", { hasText: "i2" }).waitFor();
  await page.locator(".point-link", { hasText: "i1" }).click();
  await page.keyboard.press("r");
  const sheet = page.locator("dialog.sheet");
  await sheet.locator(".verb.restore + code", { hasText: "a.txt" }).waitFor();
  assert.ok(!(await sheet.innerText()).includes("mine.txt"), "it knows nothing about this file");
  await sheet.getByRole("button", { name: "Rewind", exact: true }).click();
  await page.locator(".notice", { hasText: "Rewound to" }).waitFor();
  assert.equal(readFileSync(join(dir, "a.txt"), "utf8"), "one\n");
  assert.equal(readFileSync(join(dir, "mine.txt"), "utf8"), "mine\n");
  await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
  await page.locator(".notice", { hasText: "Undone" }).waitFor();
  assert.equal(readFileSync(join(dir, "a.txt"), "utf8"), "one\ntwo\n");
  const conversation = await find(page, server, "from the editor");
  await page.goto(`${conversation}/diff`);
  await page.locator(".diff-line", { hasText: "two" }).first().waitFor();
  assert.equal(await page.locator(".review-file", { hasText: "mine.txt" }).count(), 0);
});

test("a plan that has become stale is refused", async () => {
  const workspace = shop();
  const post = async (method, data) => {
    const res = await page.context().request.post(`${server.address}/stet.v1.CheckpointService/${method}`, { data, headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" } });
    return [res.status(), await res.json()];
  };
  const id = decodeURIComponent(new URL(retry).pathname.slice(3));
  const plan = { ref: "turn:1", workspace, conversation: id, files: true, withConversation: true, conflicts: "keep-mine" };
  const [ok, answer] = await post("PlanRewind", plan);
  assert.equal(ok, 200);
  const [none] = await post("Rewind", { plan });
  assert.equal(none, 400);
  const [stale, why] = await post("Rewind", { plan: { ...plan, ref: "turn:2" }, planToken: answer.planToken });
  assert.equal(stale, 400);
  assert.equal(why.code, "failed_precondition");
});

test("a conversation is forked from a checkpoint", async () => {
  await page.goto(prices);
  await page.locator(".point-link", { hasText: "Write down" }).click();
  await page.getByRole("button", { name: "Fork" }).click();
  await page.locator("h1", { hasText: "(fork)" }).waitFor();
  await page.getByText("forked from").waitFor();
});

test("keys lead everywhere, and the sheet names them", async () => {
  await page.goto(server.address + "/");
  await page.locator("a.row").first().waitFor();
  await page.keyboard.press("?");
  assert.match(await text("dialog.sheet"), /Go to storage[\s\S]*Next/);
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.waitForURL(/operations/);
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.locator("a.row").first().waitFor();
  // Conversations that earlier tests changed come first, and not all of them have checkpoints.
  const href = new URL(retry).pathname;
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("href"));
  for (let rows = 0; rows < 100 && (await focused()) !== href; rows++) {
    await page.keyboard.press("j");
  }
  assert.equal(await focused(), href);
  await page.keyboard.press("Enter");
  await page.waitForURL(server.address + href);
  await page.locator(".point-link").first().waitFor();
  await page.keyboard.press("j");
  await page.locator(".point.selected").waitFor();
  await page.keyboard.press("3");
  await page.waitForURL(/\/diff\?at=/);
  await page.keyboard.press("d");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.keyboard.press("d");
  await page.keyboard.press("d");
});

test("ten thousand turns are read where one looks", async () => {
  const long = await find(page, server, "ten thousand turns");
  await page.goto(long);
  await page.getByText("answer number 10000").waitFor();
  assert.ok((await page.locator(".turn").count()) < 60, "only what is in view is on the page");
  await page.goto(`${long}?turn=5000`);
  await page.locator(".turn.wanted", { hasText: "answer number 5000" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("g");
  await page.getByText("answer number 1", { exact: true }).waitFor();
  assert.ok((await page.locator(".turn").count()) < 60);
});

test("hostile words do nothing", async () => {
  const hostile = await find(page, server, "<script>");
  await page.goto(hostile);
  await page.locator(".prose").first().waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator(".turn img, .turn iframe, .turn script, .turn style, .turn form, .turn [onerror]").count(), 0);
  assert.equal(await page.locator('.turn a[href^="javascript"]').count(), 0);
  assert.match(await text(".turn"), /<img src=x onerror/);
});

test("what is not there is said so", async () => {
  await page.goto(`${server.address}/c/none`);
  await page.locator(".empty", { hasText: "This conversation does not exist" }).getByRole("link", { name: "All conversations" }).waitFor();
  assert.doesNotMatch(await text("main"), /not found/i, "words of the server are for programs");
  await page.goto(`${server.address}/no/such/page`);
  await page.locator(".empty", { hasText: "This page does not exist" }).waitFor();
  await page.goto(`${server.address}/inspect/xyz`);
  await page.getByText("Not a blob ID").waitFor();
  await page.goto(`${server.address}/live/none`);
  await page.locator(".trouble, .link.ended").first().waitFor();
});

test("answers that take long are waited for", async () => {
  const other = await page.context().newPage();
  await other.clock.install();
  let asked = 0;
  let release;
  const held = new Promise((done) => (release = done));
  await other.route("**/stet.v1.ConversationService/Get", async (route) => {
    asked++;
    await held;
    await route.continue();
  });
  const first = other.waitForRequest("**/stet.v1.ConversationService/Get");
  await other.goto(retry);
  await first;
  await other.clock.runFor(20_000); // in which the page would like to know what is new
  assert.equal(asked, 1, "asked again before there was an answer");
  release();
  await other.locator("h1", { hasText: "add retry to checkout" }).waitFor();
  await other.close();
});

test("checkpoints that are no longer kept leave a gap", async () => {
  const other = await page.context().newPage();
  await other.goto(await find(other, server, "mostly forgotten"));
  await other.locator(".point.gap", { hasText: "3 checkpoints no longer kept" }).waitFor();
  assert.equal(await other.locator(".point-link").count(), 2);
  await other.keyboard.press("j");
  await other.keyboard.press("j");
  await other.locator(".point.selected", { hasText: "c1" }).waitFor();
  await other.close();
});

test("nothing is wider than a telephone", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  const narrow = await context.newPage();
  await narrow.goto(`${server.address}/#${server.token}`);
  await narrow.locator("a.row").first().waitFor();
  // The head takes one line; the other pages are behind a button.
  assert.ok((await narrow.locator("header.top").boundingBox()).height < 50);
  await narrow.locator("header.top summary").click();
  await narrow.locator("header.top .menu").getByRole("link", { name: "Storage" }).click();
  await narrow.waitForURL(/storage/);
  for (const path of ["/", "/compare", "/operations", "/storage", "/search?q=retry", new URL(retry).pathname, `${new URL(retry).pathname}/diff`]) {
    await narrow.goto(server.address + path);
    await narrow.locator("h1").first().waitFor();
    if (path === "/compare") await narrow.locator(".side select").first().waitFor();
    assert.equal(await narrow.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, path);
  }
  await context.close();
});

test("a live tail goes on after the server was started anew, and says so", async () => {
  await page.goto(`${server.address}/live/demo-live`);
  await page.locator(".link.open").waitFor();
  const seq = async () => Number((await text(".live-head code")).replace(/\D/g, ""));
  await page.waitForFunction(() => Number(document.querySelector(".live-head code")?.textContent.replace(/\D/g, "")) > 3);
  const other = await page.context().newPage();
  await other.goto(server.address + "/");
  await other.locator("a.row").first().waitFor();
  const listen = new URL(server.address).host;
  await server.stop();
  await other.locator(".lost", { hasText: "The server does not answer" }).waitFor();
  await page.locator(".link.lost").waitFor();
  const last = await seq();
  server = await Server.start(listen);
  await page.locator(".event-note.resumed", { hasText: "No events were missed" }).waitFor();
  await other.locator(".lost p").waitFor({ state: "detached" });
  await other.close();
  await page.waitForFunction((n) => Number(document.querySelector(".live-head code")?.textContent.replace(/\D/g, "")) > n, last);
  const [, after] = /after event (\d+)/.exec(await text(".event-note.resumed"));
  assert.equal(Number(after), last);
});
