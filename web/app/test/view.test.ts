import assert from "node:assert/strict";
import { test } from "node:test";
import { matrix, result, score } from "../src/lib/attempts.ts";
import { about, author, markOf, marks, place, short } from "../src/lib/blame.ts";
import { command } from "../src/lib/command.ts";
import { parseUnified, split, unified } from "../src/lib/diff.ts";
import { ago, baseName, bytes, count, dayName, cost, duration, hex, marked, modelName, oneLine, ratio, spentWords, tokenCount, tokens, unhex } from "../src/lib/format.ts";
import { box, curve, layout } from "../src/lib/graph.ts";
import { Heights } from "../src/lib/heights.ts";
import { type Arrangement, grouped, isEmptyRun, matches, merged } from "../src/lib/home.ts";
import { type Event, emptyLog, fold, pause } from "../src/lib/live.ts";
import { sorted } from "../src/lib/plan.ts";
import { begin, stacked } from "../src/lib/plot.ts";
import { Queue } from "../src/lib/queue.ts";
import { parse, to } from "../src/lib/route.ts";
import { excerpt, groups } from "../src/lib/search.ts";
import { isGap, lanes, pair, target } from "../src/lib/timeline.ts";
import { parents, treeRows } from "../src/lib/tree.ts";
import { byTurn, pageTurns, pagesFor } from "../src/lib/turns.ts";

test("times are told as people tell them", () => {
  const now = new Date(2026, 10, 15, 12, 0, 0).getTime();
  assert.equal(ago(now - 3_000, now), "just now");
  assert.equal(ago(now - 30_000, now), "30 s ago");
  assert.equal(ago(now - 5 * 60_000, now), "5 min ago");
  assert.equal(ago(now - 3 * 3_600_000, now), "3 h ago");
  assert.equal(ago(now - 24 * 3_600_000, now), "1 day ago");
  assert.equal(ago(now - 400 * 24 * 3_600_000, now), "1 year ago");
  assert.equal(ago(now + 3_600_000, now), "in the future");
  assert.equal(dayName(now - 60_000, now), "Today");
  assert.equal(dayName(now - 13 * 3_600_000, now), "Yesterday");
  assert.equal(dayName(now - 3 * 24 * 3_600_000, now), "Thursday");
  assert.match(dayName(now - 40 * 24 * 3_600_000, now), /October 6, 2026/);
});

test("durations and tokens", () => {
  assert.equal(duration(350), "350 ms");
  assert.equal(duration(1500), "1.5 s");
  assert.equal(duration(42_400), "42 s");
  assert.equal(duration(130_000), "2 min 10 s");
  assert.equal(duration(120_000), "2 min");
  assert.equal(duration(7_200_000), "2 h");
  assert.equal(duration(3_900_000), "1 h 5 min");
  assert.equal(tokens(12, 100), "12 of 100 tokens");
  assert.equal(tokens(34_200, 200_000), "34k of 200k tokens");
  assert.equal(tokens(1500, 0), "1.5k tokens");
});

test("sizes and counts", () => {
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(1023), "1023 B");
  assert.equal(bytes(1536), "1.5 KiB");
  assert.equal(bytes(10n * 1024n * 1024n), "10 MiB");
  assert.equal(bytes(5 * 2 ** 50), "5120 TiB");
  assert.equal(count(1, "turn"), "1 turn");
  assert.equal(count(12345n, "blob"), "12\u202f345 blobs");
  assert.equal(ratio(30, 10), "3.0×");
  assert.equal(ratio(30, 0), "–");
  assert.equal(baseName("/a/b/"), "b");
  assert.equal(oneLine(" a\n b\t c ", 80), "a b c");
  assert.equal(oneLine("abcdef", 4), "abc…");
});

test("ids survive the way to hex and back", () => {
  const id = new Uint8Array([0, 1, 0xab, 0xff]);
  assert.equal(hex(id), "0001abff");
  assert.deepEqual(unhex("0001abff"), id);
  assert.equal(unhex("0g"), null);
  assert.equal(unhex("abc"), null);
});

test("matches are marked by bytes, not by letters", () => {
  assert.deepEqual(marked("über die Brücke", [10, 18]), [
    { text: "über die ", hit: false },
    { text: "Brücke", hit: true },
  ]);
  assert.deepEqual(marked("abc", []), [{ text: "abc", hit: false }]);
  assert.deepEqual(marked("abc", [2, 1, 0, 9]), [{ text: "abc", hit: true }]);
});

test("addresses are read and written alike", () => {
  assert.deepEqual(parse("/"), { page: "home" });
  assert.deepEqual(parse("/c/a%2Fb"), { page: "conversation", id: "a/b", tab: "transcript" });
  assert.deepEqual(parse("/c/x/diff"), { page: "conversation", id: "x", tab: "diff" });
  assert.deepEqual(parse("/c/x/other"), { page: "missing" });
  assert.deepEqual(parse("/c/%E0%A4%A"), { page: "missing" });
  assert.deepEqual(parse("/live/agent"), { page: "live", id: "agent" });
  assert.deepEqual(parse("/storage"), { page: "storage" });
  assert.deepEqual(parse(to.try("x7k2m9")), { page: "try", id: "x7k2m9" });
  assert.deepEqual(parse("/nothing/here"), { page: "missing" });
  assert.equal(to.conversation("a/b", "diff", { at: "c1", turn: undefined }), "/c/a%2Fb/diff?at=c1");
  assert.equal(to.search("a b&c"), "/search?q=a+b%26c");
  assert.deepEqual(parse(to.conversation("a/b c")), { page: "conversation", id: "a/b c", tab: "transcript" });
});

test("a list knows where its rows are", () => {
  const h = new Heights(10_000, 20);
  assert.equal(h.total, 200_000);
  assert.equal(h.set(0, 50), 30);
  assert.equal(h.set(0, 50), 0);
  assert.equal(h.top(1), 50);
  assert.equal(h.at(49), 0);
  assert.equal(h.at(50), 1);
  assert.equal(h.at(1e9), 9999);
  assert.deepEqual(h.span(50, 100, 2), [0, 9]);
  const longer = new Heights(10_001, 20, h);
  assert.equal(longer.top(1), 50);
  assert.equal(longer.total, 200_050);
  assert.deepEqual(new Heights(0, 20).span(0, 100, 2), [0, 0]);
  assert.equal(h.set(-1, 5), 0);
});

const line = (op: string, text: string) => ({ op, text, html: text });

test("a diff is shown in one column or in two", () => {
  const hunks = [{ fromLine: 3, toLine: 3, lines: [line(" ", "a"), line("-", "b"), line("-", "c"), line("+", "d"), line(" ", "e")] }];
  const one = unified(hunks);
  assert.deepEqual(
    one.map((r) => (r.kind === "line" ? [r.before, r.after, r.cell.op] : r.kind)),
    ["gap", [3, 3, " "], [4, 0, "-"], [5, 0, "-"], [0, 4, "+"], [6, 5, " "]],
  );
  const two = split(hunks);
  assert.deepEqual(
    two.map((r) => (r.kind === "pair" ? [r.left?.number ?? 0, r.right?.number ?? 0] : r.kind)),
    ["gap", [3, 3], [4, 4], [5, 0], [6, 5]],
  );
  assert.equal(one[0].kind === "gap" && one[0].text, "@@ −3,4 +3,3 @@");
  assert.deepEqual(
    parseUnified("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n").map((l) => l.op),
    ["f", "f", "@", "-", "+", " "],
  );
});

test("the timeline has one line and branches beside it", () => {
  const at = (gone: boolean, quiet = false, branch = gone ? 1 : 0) => ({ gone, quiet, branch });
  const rows = lanes([at(false), at(false, true), at(true), at(true), at(false)]);
  assert.equal(rows.length, 4);
  assert.deepEqual(
    rows.map((r) => [r.lane, r.above, r.below, r.branchAbove, r.joins]),
    [
      [0, false, true, false, false],
      [1, true, true, false, false],
      [1, true, true, true, true],
      [0, true, false, false, false],
    ],
  );
  assert.equal(lanes([at(false), at(false, true)], true).length, 2);
  assert.deepEqual(
    lanes([at(true, false, 2), at(true, false, 2), at(true), at(false)]).map((r) => [r.branchAbove, r.joins]),
    [[false, false], [true, true], [false, true], [false, false]],
  );
  assert.deepEqual(lanes([]), []);
  assert.ok(isGap({ checkpoint: { kind: "forgotten" } }) && !isGap({ checkpoint: { kind: "auto" } }) && !isGap({}));
});

const event = (kind: string, seq: bigint, more: Partial<Event> = {}): Event => ({
  offsetKey: `o${seq}`, kind, text: "", tool: "", callId: "", path: "", status: "", added: 0, removed: 0, diff: "", seq, ...more,
});

test("events become what a reader sees", () => {
  let log = emptyLog;
  for (const e of [
    event("status", 1n, { status: "running" }),
    event("text", 2n, { text: "Hel" }),
    event("text", 3n, { text: "lo" }),
    event("tool", 4n, { callId: "a", tool: "Edit", status: "running" }),
    event("text", 5n, { text: "done" }),
    event("tool", 6n, { callId: "a", tool: "Edit", status: "success" }),
    event("beat", 6n),
  ]) log = fold(log, e);
  assert.deepEqual(
    log.items.map((i) => [i.kind, i.text, i.status]),
    [["status", "", "running"], ["text", "Hello", ""], ["tool", "", "success"], ["text", "done", ""]],
  );
  assert.equal(log.status, "running");
  assert.equal(log.offset, "o6");
});

test("a follower that comes back sees each event once, and is told", () => {
  let log = fold(emptyLog, event("text", 1n, { text: "a" }));
  log = fold(log, event("resumed", 1n));
  log = fold(log, event("text", 1n, { text: "a" }));
  log = fold(log, event("text", 2n, { text: "b" }));
  assert.deepEqual(log.items.map((i) => i.kind), ["text", "resumed", "text"]);
  assert.match(log.items[1].text, /after event 1/);
  assert.equal(log.items[2].text, "b");
  const fresh = fold(log, event("restarted", 0n));
  assert.equal(fresh.offset, "");
  assert.deepEqual(fresh.items.map((i) => i.kind), ["restarted"]);
  assert.equal(pause(1), 250);
  assert.equal(pause(99), 5000);
});

test("a page that is left open does not grow without limit", () => {
  let log = emptyLog;
  for (let n = 1n; n <= 2500n; n++) log = fold(log, event("user", n, { text: "x" }));
  assert.equal(log.items.length, 2000);
  assert.equal(log.seq, 2500n);
});

test("conversations are grouped by day and workspace", () => {
  const now = new Date(2026, 10, 15, 12, 0, 0).getTime();
  const row = (id: string, workspace: string, age: number) => ({ id, workspace, updatedMs: BigInt(now - age) });
  const sub = { ...row("5", "/w/c", 500), subagentOf: "2" };
  const family = [row("2", "/w/b", 2000), sub];
  const shown = (unfolded: Set<string>) => grouped(family, now, unfolded).flatMap((l) => (l.kind === "row" ? [`${l.row.id}/${l.depth}`] : l.kind === "fold" ? [`+${l.count}`] : []));
  assert.deepEqual(shown(new Set()), ["2/0", "+1"]);
  assert.deepEqual(shown(new Set(["2"])), ["2/0", "+1", "5/1"]);
  assert.deepEqual(grouped([sub], now).filter((l) => l.kind === "row").length, 1, "a subagent without its parent is listed");
  const lines = grouped([row("1", "/w/a", 1000), row("2", "/w/b", 2000), row("3", "/w/a", 3000), row("4", "", 26 * 3_600_000)], now);
  assert.deepEqual(
    lines.map((l) => (l.kind === "row" ? l.row.id : l.kind === "fold" ? l.key : l.name)),
    ["Today", "a", "1", "3", "b", "2", "Yesterday", "no workspace", "4"],
  );
  assert.equal(new Set(lines.map((l) => l.key)).size, lines.length);
  const r = { id: "x", title: "Add Retry", workspace: "/shop", agent: "codex" };
  assert.ok(matches(r, "retry CODEX"));
  assert.ok(!matches(r, "retry cursor"));
  assert.ok(matches(r, ""));
});

test("what turns took is shown as far as it is known", () => {
  assert.deepEqual([0, 999, 12_345, 999_949, 999_950, 2_000_000].map((n) => tokenCount(n)), ["", "999", "12.3k", "999.9k", "1.0M", "2.0M"]);
  assert.deepEqual([undefined, 0, 0.004, 0.12, 3].map((n) => cost(n)), ["", "", "<$0.01", "$0.12", "$3.00"]);
  assert.equal(modelName("claude-opus-5-20260501"), "claude-opus-5");
  const spent = { model: "m", inputTokens: 10_000n, outputTokens: 1_000n, cacheReadTokens: 1_300n, cacheWriteTokens: 45n, costUsd: 0.12, durationMs: 41_000n };
  assert.deepEqual(spentWords(spent), ["m", "12.3k tokens", "$0.12", "41 s"]);
  assert.deepEqual(spentWords({ ...spent, model: "", inputTokens: 0n, outputTokens: 0n, cacheReadTokens: 0n, cacheWriteTokens: 0n, costUsd: undefined, durationMs: 0n }), []);
  assert.deepEqual(spentWords(undefined), []);
});

test("new rows stand above those that are known", () => {
  const [a, b, a2] = [{ id: "a", n: 1 }, { id: "b", n: 1 }, { id: "a", n: 2 }];
  assert.equal(merged(undefined, undefined), undefined);
  assert.deepEqual(merged(undefined, [a, b]), [a, b]);
  assert.deepEqual(merged([a2], [b, a]), [a2, b]);
});

test("a plan is sorted as the command line shows it", () => {
  const files = ["restore", "keep", "conflict", "delete"].map((action, i) => ({ path: String(i), action }));
  const s = sorted(files);
  assert.deepEqual([s.changes.length, s.conflicts.length, s.kept.length], [2, 1, 1]);
});

test("areas of a plot stand on each other", () => {
  const { times, series } = stacked([{ timeMs: 1000n, bytes: [5n] }, { timeMs: 1500n, bytes: [6n, 1n] }, { timeMs: 3000n, bytes: [6n, 4n] }], 2);
  assert.deepEqual(times, [1, 3]);
  assert.deepEqual(series, [[6, 6], [7, 10]]);
});

test("a graph is laid out in columns", () => {
  const { places, width, height } = layout([{ depth: 0 }, { depth: 1 }, { depth: 1 }]);
  assert.equal(width, 2 * box.width + box.gapX);
  assert.equal(height, 2 * box.height + box.gapY);
  assert.ok(places[1].x > places[0].x && places[2].y > places[1].y);
  assert.match(curve(places[0], places[1]), /^M\d/);
  assert.deepEqual(layout([]), { places: [], width: 0, height: 0 });
});

test("turns are fetched by the page", () => {
  assert.deepEqual(pagesFor(0, 1), [0]);
  assert.deepEqual(pagesFor(pageTurns - 1, pageTurns + 1), [0, 1]);
  const turns = byTurn([{ turn: 0, id: "s" }, { turn: 41, id: "a" }, { turn: 41, id: "b" }], 40);
  assert.deepEqual([...turns.keys()], [40]);
  assert.equal(turns.get(40)?.length, 3);
});

test("commands for a terminal are complete", () => {
  assert.equal(command({ store: "/s", workspace: "/w" }, "rewind", "c8", "--files"), "stet --store /s -C /w rewind c8 --files");
  assert.equal(command({ store: "" }, "fsck"), "stet fsck");
  assert.equal(command({ store: "/my store", workspace: "/it's" }, "undo"), `stet --store '/my store' -C '/it'\\''s' undo`);
});

test("a rewind goes to the selected point, or to what stands before the newest", () => {
  const at = (name: string, more = {}) => ({ name, gone: false, quiet: false, branch: 0, current: false, ...more });
  const list = [at("c6", { current: true }), at("c5", { quiet: true }), at("c4", { gone: true, branch: 1 }), at("c3"), at("c1")];
  assert.equal(target(list, undefined)?.name, "c3");
  assert.equal(target(list, list[4])?.name, "c1");
  assert.equal(target([at("c1", { current: true })], undefined)?.name, "c1");
  assert.equal(target([], undefined), undefined);
});

test("a tree shows open folders, and folders before files", () => {
  const file = (path: string) => ({ path, kind: "file", size: 1n, files: 0n });
  const dir = (path: string, files: bigint) => ({ path, kind: "dir", size: 0n, files });
  const read = new Map([["", [file("a.go"), dir("b", 2n)]], ["b", [dir("b/c", 1n), file("b/x.go")]], ["b/c", [file("b/c/y.go")]]]);
  const shown = (open: string[]) => treeRows(read, new Set(open)).map((r) => `${" ".repeat(r.depth)}${r.entry.path}`);
  assert.deepEqual(shown([]), ["b", "a.go"]);
  assert.deepEqual(shown(["b", "b/c"]), ["b", " b/c", "  b/c/y.go", " b/x.go", "a.go"]);
  assert.deepEqual(parents("b/c/y.go"), ["b", "b/c"]);
  assert.deepEqual(parents("a.go"), []);
});

test("hits are grouped by conversation, and what forks share is listed once", () => {
  const hit = (conversation: string, turn: number, snippet: string) => ({ conversation, title: conversation, turn, messageId: turn ? `m${turn}` : "", snippet, timeMs: 0n });
  const list = groups([hit("fork", 0, "fork"), hit("fork", 1, "one"), hit("a", 1, "one"), hit("a", 1, "another"), hit("a", 2, "two"), hit("b", 1, "three")]);
  assert.deepEqual(
    list.map((g) => [g.conversation, !!g.inTitle, g.found.map((f) => [f.hit.snippet, f.also.map((o) => o.conversation)])]),
    [
      ["fork", true, []],
      ["a", false, [["one", ["fork"]], ["another", []], ["two", []]]],
      ["b", false, [["three", []]]],
    ],
  );
});

test("excerpts are formatted, and diffs lose their headers", () => {
  const shown = (text: string, ...at: number[]) => excerpt(text, at).map((p) => `${p.hit ? "!" : ""}${p.code ? "c" : ""}${p.bold ? "b" : ""}[${p.text}]`).join("");
  assert.equal(shown("call `Retry` **now**", 6, 11), "[call ]!c[Retry][ ]b[now]");
  assert.equal(shown("x.go --- a/x.go +++ b/x.go @@ -1,2 +1,3 @@ +retry", 44, 49), "c[x.go +]!c[retry]");
  assert.equal(shown("# Title"), "[Title]");
  assert.equal(shown("so: ```go func a() {} ``` end"), "[so: ]c[func a() {} ][ end]");
  assert.equal(shown("it calls `Retry and", 10, 15), "[it calls ]!c[Retry]c[ and]");
  assert.equal(shown("see [the page](https://x/y) now"), "[see the page now]");
  assert.deepEqual(excerpt("{ a } - **b** + `c`", [], true), [{ text: "{ a } - **b** + `c`", hit: false, code: true, bold: false }]);
});

test("one old point does not take the width of a plot", () => {
  const recent = Array.from({ length: 20 }, (_, i) => 1_000_000 + i * 10);
  assert.equal(begin([10, ...recent]), 1_000_000);
  assert.equal(begin([10, 20, 300_000, ...recent]), 1_000_000);
  assert.equal(begin(recent), 1_000_000);
  assert.equal(begin([1, 2, 3, 4, 1_000_000]), 1); // most of it is old
  assert.equal(begin([]), 0);
  assert.equal(begin([5]), 5);
});

test("a comparison begins with two different points", () => {
  const at = (id: string, more = {}) => ({ checkpoint: { id }, gone: false, quiet: false, branch: 0, current: false, ...more });
  const list = [at("c5", { current: true }), at("c4", { gone: true, branch: 1 }), at("c3", { quiet: true }), at("c2"), at("c1")];
  const ids = (from: string | null, to: string | null, entries = list) => {
    const { left, right } = pair(entries, from, to);
    return [left?.checkpoint.id, right?.checkpoint.id ?? "@"];
  };
  assert.deepEqual(ids(null, null), ["c2", "c5"]);
  assert.deepEqual(ids("c5", null), ["c5", "c2"]);
  assert.deepEqual(ids("c4", null), ["c4", "c5"]);
  assert.deepEqual(ids(null, "c1"), ["c5", "c1"]);
  assert.deepEqual(ids("c2", "@"), ["c2", "@"]);
  assert.deepEqual(ids(null, null, [at("c1", { current: true })]), ["c1", "@"]);
});

test("conversations are sorted and grouped, and empty runs are known", () => {
  const row = (id: string, agent: string, workspace: string, turns: number, at: number) => ({ id, title: id, agent, workspace, turns, updatedMs: BigInt(at) });
  const rows = [row("a", "codex", "/p/x", 1, 300), row("b", "claude", "/p/y", 3, 200), row("c", "codex", "/p/y", 2, 100)];
  const shown = (how: Arrangement) => grouped(rows, 400, new Set(), how).map((l) => (l.kind === "row" ? l.row.id : l.kind === "fold" ? "" : `[${l.name}]`));
  assert.deepEqual(shown({ group: "project", sort: "when", up: false }), ["[x]", "a", "[y]", "b", "c"]);
  assert.deepEqual(shown({ group: "agent", sort: "when", up: false }), ["[codex]", "a", "c", "[claude]", "b"]);
  assert.deepEqual(shown({ group: "none", sort: "turns", up: false }), ["b", "c", "a"]);
  assert.deepEqual(shown({ group: "none", sort: "title", up: true }), ["a", "b", "c"]);
  const run = { title: "/bin/true --x", agent: "true", turns: 1, files: 0, checkpoints: 2, model: "", parent: "" };
  assert.ok(isEmptyRun(run));
  assert.ok(!isEmptyRun({ ...run, files: 1 }));
  assert.ok(!isEmptyRun({ ...run, title: "why is this slow?", agent: "codex" }));
  assert.ok(isEmptyRun({ ...run, turns: 0, checkpoints: 0, title: "" }));
});

test("a queue asks for what is in view, a few at a time and once", async () => {
  const asked: string[][] = [];
  let answer = () => {};
  const queue = new Queue((some) => {
    asked.push(some);
    return new Promise((done) => (answer = done));
  }, 2);
  const next = async () => {
    answer();
    await new Promise((done) => setImmediate(done));
  };
  queue.want(["a", "b", "c"]);
  queue.want(["b", "x", "x", "y", "z"]); // scrolled away from c
  assert.deepEqual(asked, [["a", "b"]]);
  await next();
  assert.deepEqual(asked, [["a", "b"], ["x", "y"]]);
  queue.want(["a", "y"]);
  await next();
  queue.want(["c"]);
  assert.deepEqual(asked, [["a", "b"], ["x", "y"], ["c"]]);
});

test("the gutter joins the lines of one change and finds them by number", () => {
  const origin = { kind: "agent", why: "", checkpoint: "1", name: "c2", place: "after turn 1", timeMs: 0n, conversation: "x", turn: 1, agent: "claude-code", model: "", prompt: "add\nretry", tool: "", among: [] };
  const mine = { ...origin, kind: "you", name: "c1", place: "before turn 1", conversation: "", turn: 0, agent: "", prompt: "" };
  const call = { number: 2, tool: "Edit", command: "" };
  const all = marks([{ line: 1, lines: 2, origin: 0 }, { line: 3, lines: 1, origin: 1, call }, { line: 4, lines: 1, origin: 1, call }, { line: 5, lines: 1, origin: 0 }], [mine, origin]);
  assert.deepEqual(all.map((m) => [m.line, m.lines]), [[1, 2], [3, 2], [5, 1]]);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map((n) => markOf(all, n)?.line), [undefined, 1, 1, 3, 3, 5, undefined]);
  assert.equal(short(origin), "c2 claude-code turn 1");
  assert.equal(short(mine), "c1 you");
  assert.equal(about(all[1]), "lines 3–4 · c2 · claude-code · turn 1 · “add retry” · call 2: Edit");
  assert.equal(place({ ...origin, kind: "unknown", why: "forgotten" }), "no longer kept");
  assert.equal(author({ ...origin, kind: "several" }), "one of several");
  assert.equal(short({ ...mine, name: "", checkpoint: "" }), "now you");
});

test("attempts are laid beside each other by path", () => {
  const file = (path: string) => ({ path, added: 1, removed: 0 });
  const rows = matrix([[file("b"), file("a")], [], [file("b")]]);
  assert.deepEqual(rows.map((r) => [r.path, r.cells.map((c) => c !== undefined)]), [["a", [true, false, false]], ["b", [true, false, true]]]);
  const ended = { ended: true, end: "", exitCode: 0, durationMs: 0n };
  assert.equal(result({ ...ended, ended: false }), "running, or killed");
  assert.equal(result({ ...ended, end: "time is over", exitCode: 124 }), "time is over");
  assert.equal(result({ ...ended, exitCode: 7 }), "exit code 7");
  assert.equal(score({ ...ended, score: 1 / 3 }), "0.333333");
  assert.equal(score(ended), "");
});
