// Runs the suite of the protocol against the server at STET_URL, with the token in
// STET_TOKEN. The suite knows no tokens: they are added to requests without one.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"

const { STET_URL: baseUrl, STET_TOKEN: token } = process.env
if (!baseUrl || !token) throw new Error("STET_URL and STET_TOKEN say where the server is")

const plain = globalThis.fetch
globalThis.fetch = (input, init = {}) => {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined))
  if (!headers.has("authorization")) headers.set("authorization", `Bearer ${token}`)
  return plain(input, { ...init, headers })
}

runConformanceTests({
  baseUrl,
  longPollTimeoutMs: Number(process.env.STET_SERVE_STREAM_WAIT_MS ?? 20000),
  subscriptions: true,
})
