/**
 * Keeps the sessions of the Claude Agent SDK in a stet server.
 *
 *     const sessionStore = StetSessionStore.connect("http://127.0.0.1:7717", token);
 *     for await (const message of query({ prompt, options: { sessionStore } })) { … }
 *
 * Entries are durable when `append` returns. An append stores what is new.
 */
export { StetSessionStore, type StetSessionStoreOptions } from "./store.js";
