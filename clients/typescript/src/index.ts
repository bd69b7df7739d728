/**
 * Blobs, conversations, checkpoints and agents of a stet server.
 *
 *     const stet = connect("http://127.0.0.1:7717", token);
 *     const id = await stet.blobs.put(new TextEncoder().encode("hello"));
 *     for await (const event of stet.agents.follow("a1")) { … }
 *
 * It runs in browsers and in Node 18 and later. The messages are in `gen/`.
 */
export { connect, type Options, type Stet } from "./client.js";
export { Agents } from "./agents.js";
export { Blobs, BlobMismatchError, hex, sha256 } from "./blobs.js";
export { changeDocuments, documentContent, eachDocument, type DocumentQuery, type NewContent } from "./documents.js";
export { classes, classOf, hasReason, reasons, reasonsOf, type Class, type Reason } from "./errors.js";
export { DataLossError, type AgentEvent, type FollowOptions } from "./follow.js";
export { Code, ConnectError } from "@connectrpc/connect";
