// The server that STET_URL and STET_TOKEN name.
import { randomUUID } from "node:crypto";

import { StetSessionStore } from "../src/index.js";

const { STET_URL: address, STET_TOKEN: token } = process.env;
if (address === undefined || token === undefined) {
  throw new Error("STET_URL and STET_TOKEN say where the server is");
}

/** Returns a store of its own, or another one of the same sessions. */
export function newStore(collection = `test-${randomUUID()}`, fetch = globalThis.fetch): StetSessionStore {
  return StetSessionStore.connect(address!, token!, { collection, fetch });
}

/** Returns a fetch that does something before the nth call of a method. */
export function before(method: string, nth: number, action: () => Promise<unknown>): typeof globalThis.fetch {
  return async (input, init) => {
    if (String(input).includes(`/stet.v1.DocumentService/${method}`) && --nth === 0) {
      await action();
    }
    return fetch(input, init);
  };
}
