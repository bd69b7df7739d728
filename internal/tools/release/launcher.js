#!/usr/bin/env node
// Starts the program of the package for this system, in the place of this process as far
// as node allows: with the same terminal, signals and exit code.
"use strict"

const { spawn } = require("node:child_process")
const { constants } = require("node:os")

const name = `@stet-dev/stet-${process.platform}-${process.arch}`
let program
try {
  program = require.resolve(`${name}/bin/stet${process.platform === "win32" ? ".exe" : ""}`)
} catch {
  console.error(`stet: there is no package for ${process.platform} on ${process.arch} (${name}); was it left out with --omit=optional?`)
  process.exit(1)
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" })
// A terminal sends these two to the program itself, too; it must not get them twice.
const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => terminal || child.kill(signal))
process.on("SIGTERM", () => child.kill("SIGTERM"))
child.on("error", (error) => {
  console.error(`stet: ${error.message}`)
  process.exit(1)
})
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
