// Runs the reference server of Durable Streams with its files in the given directory, and
// prints its address.
import { DurableStreamTestServer } from "@durable-streams/server"

console.log = console.info = () => {} // the server says what it does
const server = new DurableStreamTestServer({ port: 0, host: "127.0.0.1", dataDir: process.argv[2], compression: false })
process.stdout.write(`${await server.start()}\n`)
