// The server that STET_URL and STET_TOKEN name.
import { randomUUID } from "node:crypto";

import { StetSessionStore } from "../src/index.js";

const { STET_URL: address, STET_TOKEN: token } = process.env;
if (address === undefined || token === undefined) {
  throw new Error("STET_URL and STET_TOKEN say where the server is");
}

/** Returns a store of its own, or another one of the same sessions. */
export function newStore(collection = `test-${randomUUID()}`): StetSessionStore {
  return StetSessionStore.connect(address!, token!, { collection });
}
