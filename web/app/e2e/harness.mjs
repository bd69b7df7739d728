// Starts the real server and a real browser for the tests of this directory.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const bin = need("STET_BIN");
const store = need("STET_STORE");

function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run these tests with go test ./web/e2e`);
  return value;
}

/** Server is a stet serve process. */
export class Server {
  static async start(listen = "127.0.0.1:0") {
    const s = new Server();
    s.log = "";
    s.child = spawn(bin, ["--store", store, "serve", "--demo", "--json", "--log", "--listen", listen], { stdio: ["ignore", "pipe", "pipe"] });
    s.child.stderr.on("data", (d) => (s.log += d));
    s.exited = new Promise((done) => s.child.once("exit", done));
    const first = await new Promise((done, fail) => {
      let text = "";
      s.child.stdout.on("data", (d) => {
        text += d;
        const line = text.split("\n").find((l) => l.includes("stet.serve.v1"));
        if (line && text.includes("\n")) done(JSON.parse(line));
      });
      s.child.once("exit", (code) => fail(new Error(`the server ended with ${code}: ${s.log}`)));
    });
    s.address = first.address;
    s.token = readFileSync(first.token_file, "utf8").trim();
    return s;
  }

  async stop() {
    this.child.kill("SIGTERM");
    await this.exited;
  }
}

/** launch starts the browser that the system has. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.STET_CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
  });
}

/** open logs a new browser context in, and watches what goes wrong in it. */
export async function open(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 1200 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(45_000);
  page.wrong = [];
  page.foreign = [];
  page.on("pageerror", (e) => page.wrong.push(String(e)));
  page.on("console", (m) => m.type() === "error" && /Content Security Policy|Refused/.test(m.text()) && page.wrong.push(m.text()));
  page.on("request", (r) => !/^(data|blob):/.test(r.url()) && new URL(r.url()).origin !== server.address && page.foreign.push(r.url()));
  await page.goto(`${server.address}/#${server.token}`);
  await page.waitForSelector("a.row");
  return page;
}

/** find returns the address of the conversation whose title contains some words. */
export async function find(page, server, title) {
  await page.goto(server.address + "/");
  await page.fill(".filter", title); // only what is in view is on the page
  const row = page.locator("a.row", { hasText: title }).first();
  await row.waitFor();
  return server.address + (await row.getAttribute("href"));
}
