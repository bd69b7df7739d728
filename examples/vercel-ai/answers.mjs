// Writes the answers of chats into durable streams. Readers follow the streams, so an answer
// goes on whoever reads it, and a new process carries on where another one was killed.
import { convertToModelMessages, readUIMessageStream, streamText } from "ai";

import { Answer, Stale } from "./stet.mjs";

export class Answers {
  constructor(stet, chats, model) {
    Object.assign(this, { stet, chats, model });
  }

  /** The answer to a message of a user. */
  to(chat, message) {
    return new Answer(this.stet, chat, message);
  }

  /** Adds a message to a chat and begins to answer. A message that is sent again changes nothing. */
  async ask(id, message) {
    const chat = await this.chats.load(id);
    if (chat.messages.some((known) => known.id === message.id)) {
      return;
    }
    if (chat.answering !== null) {
      await this.settle(chat);
      return this.ask(id, message);
    }
    await this.to(id, message.id).create();
    try {
      this.begin(await this.chats.save({ ...chat, messages: [...chat.messages, message], answering: { message: message.id, epoch: 0 } }));
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
      return this.ask(id, message);
    }
  }

  /** Adds an answer to its chat that is written, but not added yet. */
  async settle(chat) {
    if (!(await this.to(chat.id, chat.answering.message).written()).closed) {
      throw new Error("the chat waits for an answer");
    }
    await this.complete(chat).catch(unlessStale);
  }

  /** Completes the answers that another process did not. */
  async carryOn() {
    for (const chat of await this.chats.unanswered()) {
      this.begin(chat);
    }
  }

  begin(chat) {
    this.complete(chat)
      .catch(unlessStale)
      .catch((error) => console.error(`the answer in chat ${chat.id} ended: ${error.message}`));
  }

  async complete(chat) {
    const { message, epoch } = chat.answering;
    const answer = this.to(chat.id, message);
    await answer.create();
    if (!(await answer.written()).closed) {
      const ours = await this.chats.save({ ...chat, answering: { message, epoch: epoch + 1 } });
      await this.write(ours, answer);
      chat = ours;
    }
    // The stream is complete, whoever wrote it: now the chat gets the message.
    const { chunks } = await answer.written();
    let reply;
    for await (reply of readUIMessageStream({ stream: ReadableStream.from(chunks) })); // the last one has all parts
    await this.chats.save({ ...chat, messages: [...chat.messages, reply], answering: null });
  }

  async write(chat, answer) {
    const { message, epoch } = chat.answering;
    const append = answer.writer(epoch);
    // The first append fences the writers before this one. From here on nobody else appends,
    // so what is read now is what to go on from. Clients do not keep transient parts.
    await append([{ type: "data-writer", data: epoch, transient: true }]);
    const { chunks } = await answer.written();
    if (!chunks.some(({ type }) => type === "start")) {
      await append([{ type: "start", messageId: `answer-${message}` }, { type: "text-start", id: "text" }]);
    }
    const said = chunks.flatMap((chunk) => (chunk.type === "text-delta" ? [chunk.delta] : [])).join("");
    const messages = await convertToModelMessages(chat.messages);
    if (said !== "") {
      messages.push({ role: "assistant", content: said });
    }
    const result = streamText({ model: this.model, messages, maxRetries: 0 });
    for await (const delta of result.textStream) {
      await append([{ type: "text-delta", id: "text", delta }]);
    }
    await append([{ type: "text-end", id: "text" }, { type: "finish" }], { close: true });
  }
}

/** A chat that another process changed is that process's business now. */
function unlessStale(error) {
  if (!(error instanceof Stale)) throw error;
}
