// The two things of a stet server that the chat uses: documents, for the messages of a chat,
// and durable streams, for answers while they are written.

/** A server that does not accept what was asked; trying again does not help. */
export class Refused extends Error {}

/** Another process changed the chat first: load it again. */
export class Stale extends Refused {}

export class Stet {
  constructor(address, token) {
    this.address = address.replace(/\/+$/, "");
    this.headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  }

  /** Sends a request until a server answers it, so that a restart of the server is not noticed. */
  async request(path, init = {}) {
    for (;;) {
      const answer = await fetch(this.address + path, { ...init, headers: { ...this.headers, ...init.headers } }).catch((error) => {
        init.signal?.throwIfAborted();
        return { status: 503, error };
      });
      if (answer.status < 500) {
        return answer;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async call(method, request) {
    const answer = await this.request(`/stet.v1.DocumentService/${method}`, { method: "POST", body: JSON.stringify(request) });
    if (!answer.ok) {
      const stale = answer.headers.get("Stet-Error-Class") === "stale";
      throw new (stale ? Stale : Refused)(`${method}: ${await answer.text()}`);
    }
    return answer.json();
  }
}

/** Chats: one document each, with its messages and the answer that is being written. */
export class Chats {
  constructor(stet) {
    this.stet = stet;
  }

  async load(id) {
    const { documents = [] } = await this.stet.call("Get", { collection: "chats", names: [id] });
    return documents.length === 0 ? { id, version: "", messages: [], answering: null } : chat(documents[0]);
  }

  /** Saves a chat. It fails if another process saved the chat after it was loaded. */
  async save({ id, version, messages, answering }) {
    const data = Buffer.from(JSON.stringify({ messages, answering })).toString("base64");
    const { documents } = await this.stet.call("Commit", {
      collection: "chats",
      changes: [{ name: id, expect: version, set: { type: "application/json", data } }],
    });
    return { id, version: documents[0].version, messages, answering };
  }

  /** Lists the chats whose answers are not complete. */
  async unanswered() {
    const all = [];
    let cursor = "";
    do {
      const page = await this.stet.call("List", { collection: "chats", page: { cursor } });
      all.push(...(page.documents ?? []).map(chat));
      cursor = page.nextCursor ?? "";
    } while (cursor !== "");
    return all.filter(({ answering }) => answering !== null);
  }
}

function chat({ name, version, data }) {
  return { id: name, version, ...JSON.parse(Buffer.from(data, "base64").toString()) };
}

/** An answer: a durable stream of the chunks that the AI SDK sends to its clients. */
export class Answer {
  constructor(stet, chat, message) {
    this.stet = stet;
    this.path = `/v1/stream/chats/${encodeURIComponent(chat)}/${encodeURIComponent(message)}`;
  }

  async create() {
    await this.checked(await this.stet.request(this.path, { method: "PUT" }));
  }

  /** Returns what can append to the stream. A writer with a greater epoch fences all others. */
  writer(epoch) {
    let seq = 0;
    return async (chunks, { close = false } = {}) => {
      // An append that is sent twice is stored once, by its number.
      const headers = { "Producer-Id": "chat", "Producer-Epoch": String(epoch), "Producer-Seq": String(seq++) };
      await this.checked(
        await this.stet.request(this.path, { method: "POST", body: JSON.stringify(chunks), headers: close ? { ...headers, "Stream-Closed": "true" } : headers }),
      );
    };
  }

  /** Returns what the stream has now. */
  async written() {
    const chunks = [];
    let offset = "-1";
    for (;;) {
      const answer = await this.checked(await this.stet.request(`${this.path}?offset=${offset}`));
      chunks.push(...(await answer.json()));
      offset = answer.headers.get("Stream-Next-Offset");
      const closed = answer.headers.get("Stream-Closed") === "true";
      if (closed || answer.headers.get("Stream-Up-To-Date") === "true") {
        return { chunks, closed };
      }
    }
  }

  /** Yields all chunks from the beginning and then each new one, until the answer is complete. */
  async *follow(signal) {
    let offset = "-1";
    for (;;) {
      const answer = await this.checked(await this.stet.request(`${this.path}?offset=${offset}&live=long-poll`, { signal }));
      if (answer.status === 200) {
        yield* await answer.json();
      }
      offset = answer.headers.get("Stream-Next-Offset") ?? offset;
      if (answer.headers.get("Stream-Closed") === "true") {
        return;
      }
    }
  }

  async exists() {
    return (await this.stet.request(this.path, { method: "HEAD" })).ok;
  }

  async checked(answer) {
    if (!answer.ok) {
      throw new Refused(`${this.path}: ${answer.status} ${await answer.text()}`);
    }
    return answer;
  }
}
