/**
 * Keeps the checkpoints of LangGraph in a stet server.
 *
 *     const saver = StetSaver.connect("http://127.0.0.1:7717", token);
 *     const graph = builder.compile({ checkpointer: saver });
 *
 * The server keeps each value of a channel as the difference from an earlier one, not as a
 * copy. Checkpoints are durable when `put` returns.
 */
export { StetSaver } from "./saver.js";
