/**
 * Keeps the sessions of the OpenAI Agents SDK in a stet server.
 *
 *     const session = StetSession.connect("http://127.0.0.1:7717", token, { sessionId: "trip" });
 *     await run(agent, "Where were we?", { session });
 *
 * Items are durable when a call returns.
 */
export { StetSession, type StetSessionOptions } from "./session.js";
