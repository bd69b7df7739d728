/**
 * Keeps the checkpoints of LangGraph in a stet server.
 *
 *     const saver = StetSaver.connect("http://127.0.0.1:7717", token);
 *     const graph = builder.compile({ checkpointer: saver });
 *
 * The server keeps each value of a channel as the difference from the one before it, so
 * a thread takes the space of what changed. Checkpoints are durable when `put` returns.
 */
export { StetSaver } from "./saver.js";
