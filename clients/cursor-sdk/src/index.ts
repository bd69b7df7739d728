/**
 * Keeps the local agents of the Cursor SDK in a stet server.
 *
 *     const store = StetLocalAgentStore.connect("http://127.0.0.1:7717", token);
 *     Cursor.configure({ local: { store } });
 *
 * A call that returned is durable. Programs on several machines may use one store.
 */
export { StetLocalAgentStore, type StoreOptions } from "./store.js";
