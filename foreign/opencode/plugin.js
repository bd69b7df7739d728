// Written by `stet connect opencode`, removed by `stet disconnect opencode`. It reports
// what OpenCode does to stet, which keeps a checkpoint of the files for every turn. It
// never changes what OpenCode does: every error is caught, and nothing is waited for
// longer than the limits below say.
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { closeSync, openSync, unlinkSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const command = ["stet", "hook", "opencode"]

// Milliseconds to wait for the command.
const promptLimit = 5000
const toolLimit = 1000

// Longer texts are in OpenCode's own database.
const shorten = (_key, value) =>
  typeof value === "string" && value.length > 16384 ? value.slice(0, 16384) : value

// OpenCode may end right after it reports the end of a turn, before a pipe is written. A
// file is whole when the command starts; it has no name and goes with the command.
function fileOf(text) {
  try {
    const name = join(tmpdir(), `stet-${process.pid}-${randomUUID()}`)
    const fd = openSync(name, "wx+", 0o600)
    try {
      unlinkSync(name)
      writeSync(fd, text, 0) // at an offset, so that the command reads from the start
      return fd
    } catch {
      closeSync(fd)
    }
  } catch {}
}

function run(payload, limit) {
  return new Promise((resolve) => {
    try {
      const timer = setTimeout(resolve, limit)
      const done = () => {
        clearTimeout(timer)
        resolve()
      }
      const text = JSON.stringify(payload, shorten)
      const file = process.platform === "win32" ? undefined : fileOf(text)
      let child
      try {
        child = spawn(command[0], [...command.slice(1), payload.event], {
          stdio: [file ?? "pipe", "ignore", "ignore"],
          detached: process.platform !== "win32",
          windowsHide: true,
        })
      } finally {
        if (file !== undefined) closeSync(file)
      }
      child.on("error", done)
      child.on("exit", done)
      child.stdin?.on("error", () => {})
      child.stdin?.end(text)
      child.unref()
    } catch {
      resolve()
    }
  })
}

export const Stet = async ({ directory }) => {
  const parents = new Map() // session of a subagent -> the session that started it
  const turns = new Map() // session -> its last user message
  const of = (event, session, more) => {
    const parent = parents.get(session)
    return { event, session, parent, turn: turns.get(parent ?? session), cwd: directory, ...more }
  }
  const guard = (fn) => async (input, output) => {
    try {
      await fn(input, output)
    } catch {}
  }
  return {
    event: guard(async ({ event }) => {
      const p = event?.properties
      if (event?.type === "session.created") {
        if (p?.info?.parentID) parents.set(p.info.id, p.info.parentID)
        else await run(of(event.type, p.info.id), toolLimit)
      } else if (event?.type === "session.idle") {
        await run(of(event.type, p.sessionID), promptLimit)
      }
    }),
    "chat.message": guard(async (input, output) => {
      if (!parents.has(input.sessionID)) turns.set(input.sessionID, output?.message?.id)
      const prompt = (output?.parts ?? []).filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text).join("\n")
      await run(of("chat.message", input.sessionID, { prompt }), promptLimit)
    }),
    "tool.execute.before": guard(async (input, output) => {
      const tool = { id: input.callID, name: input.tool, input: output?.args }
      await run(of("tool.execute.before", input.sessionID, { tool }), toolLimit)
    }),
    "tool.execute.after": guard(async (input) => {
      const tool = { id: input.callID, name: input.tool, input: input.args }
      await run(of("tool.execute.after", input.sessionID, { tool }), toolLimit)
    }),
  }
}
