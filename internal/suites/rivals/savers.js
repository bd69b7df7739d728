// Measures the savers of LangGraph and ours, one after the other in each round, and prints
// one JSON object: rates, and what the SQLite saver takes after a state has grown.
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { statSync } from "node:fs"
import { MemorySaver } from "@langchain/langgraph-checkpoint"
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite"
import { StetSaver } from "../../../clients/langgraph/dist/src/index.js"

const { STET_URL, STET_TOKEN, DIR, ROUNDS, STEPS, GROW, MESSAGE } = process.env
const savers = {
  memory: new MemorySaver(),
  sqlite: SqliteSaver.fromConnString(join(DIR, "rates.db")),
  stet: StetSaver.connect(STET_URL, STET_TOKEN),
}
const id = (step) => `1f0a0000-0000-6000-8000-${String(step).padStart(12, "0")}`

function checkpoint(step, messages) {
  return {
    v: 4, id: id(step), ts: new Date().toISOString(), channel_values: { messages },
    channel_versions: { messages: step + 1 }, versions_seen: { agent: { messages: step } },
  }
}

const metadata = (step) => ({ source: "loop", step, parents: {} })

async function put(saver, thread, step, messages) {
  const configurable = { thread_id: thread, checkpoint_ns: "" }
  if (step > 0) configurable.checkpoint_id = id(step - 1)
  await saver.put({ configurable }, checkpoint(step, messages), metadata(step), { messages: step + 1 })
}

// Half of a message is text that does not compress.
const message = () => ({ role: "user", content: randomBytes(Number(MESSAGE) / 4).toString("hex") + "some words that come again. ".repeat(Number(MESSAGE) / 56) })

const took = {}
async function timed(name, calls, run) {
  const start = performance.now()
  await run()
  const all = (took[name] ??= { calls: 0, ms: 0 })
  all.calls += calls
  all.ms += performance.now() - start
}

const steps = Number(STEPS)
for (let round = 0; round < Number(ROUNDS); round++) {
  for (const [name, saver] of Object.entries(savers)) {
    const thread = `rate-${round}`
    const messages = [message(), message()]
    await timed(`${name} puts`, steps, async () => {
      for (let step = 0; step < steps; step++) await put(saver, thread, step, [...messages, { step }])
    })
    await timed(`${name} gets`, steps, async () => {
      for (let step = 0; step < steps; step++) {
        const found = await saver.getTuple({ configurable: { thread_id: thread, checkpoint_ns: "", checkpoint_id: id(step) } })
        if (found?.checkpoint.channel_values.messages.at(-1).step !== step) throw new Error(`${name} lost step ${step}`)
      }
    })
  }
}

const grown = join(DIR, "grown.db")
const sqlite = SqliteSaver.fromConnString(grown)
const messages = []
const pieces = [] // what each step brought
for (let step = 0; step < Number(GROW); step++) {
  messages.push(message())
  pieces.push({ ...checkpoint(step, messages.slice(-1)), metadata: metadata(step) })
  await put(sqlite, "grown", step, messages)
  await put(savers.stet, "grown", step, messages)
}
sqlite.db.pragma("wal_checkpoint(TRUNCATE)")
const rates = Object.fromEntries(Object.entries(took).map(([name, { calls, ms }]) => [name, (1000 * calls) / ms]))
process.stdout.write(JSON.stringify({ rates, grown: statSync(grown).size, pieces }), () => process.exit(0))
