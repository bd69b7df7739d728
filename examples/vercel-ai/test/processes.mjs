// Processes that a test kills and starts again at the same address.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A process that prints one line when it is ready. */
class Process {
  /** Starts it; the line that it prints comes from ready. */
  async start() {
    const { command, args, env } = this.how();
    this.child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface(this.child.stdout);
    const [line] = await Promise.race([
      once(lines, "line"),
      once(this.child, "exit").then(([code]) => Promise.reject(new Error(`${command} ended with ${code}`))),
    ]);
    this.ready(line);
    return this;
  }

  async kill() {
    const gone = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await gone;
  }
}

/** stet serve, on a store that outlives it. */
export class Server extends Process {
  port = 0;

  constructor(dir) {
    super();
    this.home = dir;
    this.store = join(dir, "store");
  }

  how() {
    const home = { HOME: this.home, XDG_CONFIG_HOME: this.home, XDG_STATE_HOME: this.home, XDG_DATA_HOME: this.home };
    return { command: process.env.STET_BIN, args: ["serve", "--json", "--listen", `127.0.0.1:${this.port}`], env: { ...home, STET_STORE: this.store } };
  }

  ready(line) {
    this.address = JSON.parse(line).address;
    this.port = new URL(this.address).port;
    this.token = readFileSync(join(this.store, "token"), "utf8").trim();
  }
}

/** The server of the example. */
export class Chat extends Process {
  port = 0;

  constructor(server, gate) {
    super();
    Object.assign(this, { server, gate });
  }

  how() {
    const env = { STET_URL: this.server.address, STET_TOKEN: this.server.token, WORD_GATE: this.gate.next(), PORT: String(this.port) };
    return { command: process.execPath, args: [fileURLToPath(new URL("../server.mjs", import.meta.url))], env };
  }

  ready(line) {
    this.address = line;
    this.port = new URL(line).port;
  }
}

/** Lets the model say its words: each word is a request that waits here. */
export class Gate {
  waiting = [];
  isOpen = false;
  generation = 0;

  async start() {
    this.http = createServer((request, response) => {
      if (this.isOpen) {
        response.end();
      } else if (request.url === `/${this.generation}`) {
        this.waiting.push(response);
        this.arrived?.();
      } // others come from a process that was killed
    });
    this.http.listen(0, "127.0.0.1");
    await once(this.http, "listening");
    this.address = `http://127.0.0.1:${this.http.address().port}/`;
    return this;
  }

  /** Returns the address for the next process. Requests of those before count no more. */
  next() {
    this.waiting = [];
    return `${this.address}${++this.generation}`;
  }

  /** Lets the model say one word. */
  async word() {
    while (this.waiting.length === 0) {
      await new Promise((resolve) => (this.arrived = resolve));
    }
    this.waiting.shift().end();
  }

  /** Lets the model say all words. */
  open() {
    this.isOpen = true;
    for (const response of this.waiting) response.end();
  }
}
