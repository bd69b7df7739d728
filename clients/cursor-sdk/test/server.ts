import { StetLocalAgentStore } from "../src/index.js";

const { STET_URL: address, STET_TOKEN: token } = process.env;

/** A store on the server of the tests, with a collection of its own. */
export function ours(collection: string): StetLocalAgentStore {
  if (address === undefined || token === undefined) {
    throw new Error("STET_URL and STET_TOKEN say where the server is");
  }
  return StetLocalAgentStore.connect(address, token, { collection });
}
