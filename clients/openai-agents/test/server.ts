// The server that STET_URL and STET_TOKEN name.
import { randomUUID } from "node:crypto";

import { StetSession } from "../src/index.js";

const { STET_URL: address, STET_TOKEN: token } = process.env;
if (address === undefined || token === undefined) {
  throw new Error("STET_URL and STET_TOKEN say where the server is");
}

/** Returns a session of its own, or another object for the same one. */
export function newSession(sessionId: string = randomUUID(), fetch = globalThis.fetch): StetSession {
  return StetSession.connect(address!, token!, { sessionId, collection: "test", fetch });
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
