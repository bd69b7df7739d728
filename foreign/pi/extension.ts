// Written by `stet connect pi`, removed by `stet disconnect pi`. It reports what pi does
// to stet, which keeps a checkpoint of the files for every turn. It never changes what pi
// does: every error is caught, and nothing is waited for longer than `limits` says.
import { spawn } from "node:child_process";

const command = ["stet", "hook", "pi"];

// Milliseconds to wait for the command at each event.
const limits = {
  session_start: 1000,
  before_agent_start: 5000,
  tool_call: 1000,
  tool_result: 1000,
  agent_end: 5000,
  session_shutdown: 2000,
};

// Longer texts are in the session's own file.
const shorten = (_key, value) =>
  typeof value === "string" && value.length > 16384 ? value.slice(0, 16384) : value;

function payload(event, ctx) {
  const sessions = ctx?.sessionManager;
  const out = {
    event: event.type,
    session: sessions?.getSessionId?.(),
    file: sessions?.getSessionFile?.(),
    leaf: sessions?.getLeafId?.(),
    cwd: ctx?.cwd,
    reason: event.reason,
    prompt: event.prompt,
  };
  if (event.toolCallId !== undefined) {
    out.tool = { id: event.toolCallId, name: event.toolName, input: event.input, failed: event.isError };
  }
  return JSON.stringify(out, shorten);
}

function run(name, text, limit) {
  return new Promise((resolve) => {
    try {
      const timer = setTimeout(resolve, limit);
      const done = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
      const child = spawn(command[0], [...command.slice(1), name], {
        stdio: ["pipe", "ignore", "ignore"],
        detached: process.platform !== "win32",
        windowsHide: true,
      });
      child.on("error", done);
      child.on("exit", done);
      child.stdin.on("error", () => {});
      child.stdin.end(text);
      child.unref();
      child.stdin.unref?.();
    } catch {
      resolve(undefined);
    }
  });
}

export default function (pi) {
  for (const [name, limit] of Object.entries(limits)) {
    try {
      pi.on(name, async (event, ctx) => {
        try {
          await run(name, payload(event, ctx), limit);
        } catch {}
      });
    } catch {}
  }
}
