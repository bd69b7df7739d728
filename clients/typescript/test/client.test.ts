// Runs against the server that STET_URL and STET_TOKEN name.
import assert from "node:assert/strict";
import { createServer, connect as dial, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";

import { BlobMismatchError, classOf, Code, connect, ConnectError, hasReason, hex, reasonsOf, sha256, type AgentEvent } from "../src/index.js";

const url = process.env["STET_URL"] ?? "";
const token = process.env["STET_TOKEN"] ?? "";
const stet = connect(url, token);
const text = (value: string) => ({ message: { case: "textDelta", value: { text: value } } }) as const;

function textOf(event: AgentEvent): string | undefined {
  return event.kind === "update" && event.update.message.case === "textDelta" ? event.update.message.value.text : undefined;
}

test("blobs come back as they were stored", async () => {
  const data = new Uint8Array(1 << 20).map((_, i) => i * 31);
  const id = await stet.blobs.put(data);
  assert.equal(hex(id), hex(await sha256(data)));
  await stet.blobs.flush();
  assert.deepEqual(await stet.blobs.get(id), data);
  assert.deepEqual(await stet.blobs.has(id, await sha256(new Uint8Array([1, 2, 3]))), [true, false]);
  await assert.rejects(stet.blobs.get(new Uint8Array(32)), (error: unknown) => error instanceof ConnectError && error.code === Code.NotFound);
});

test("blobs larger than a message come back as they were stored", async () => {
  for (const size of [3 << 20, (3 << 20) + 1, 7 << 20]) {
    const data = new Uint8Array(size).map((_, i) => (i * i) >> 5);
    const id = await stet.blobs.put(data);
    assert.equal(hex(id), hex(await sha256(data)));
    assert.ok(Buffer.from(data).equals(await stet.blobs.get(id)), `${size} bytes changed`);
  }
});

test("errors have the class and the reasons that the server named", async () => {
  await assert.rejects(stet.blobs.get(new Uint8Array(32).fill(7)), (error: unknown) => {
    assert.equal(classOf(error), "not-found");
    assert.deepEqual(reasonsOf(error), ["blob-not-found"]);
    return hasReason(error, "blob-not-found") && !hasReason(error, "full");
  });
  assert.equal(classOf(new Error("local")), undefined);
  assert.deepEqual(reasonsOf(new Error("local")), []);
});

test("other bytes than the id names are refused", async () => {
  const id = await stet.blobs.put(new TextEncoder().encode("genuine"));
  const lying = connect(url, token, {
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      const bytes = new Uint8Array(await answer.arrayBuffer());
      const at = new TextDecoder("latin1").decode(bytes).indexOf("genuine");
      if (at >= 0) {
        bytes[at] = bytes[at]! ^ 1;
      }
      return new Response(bytes, answer);
    },
  });
  await assert.rejects(lying.blobs.get(id), BlobMismatchError);
});

test("a wrong token and an address with a query are refused", async () => {
  const stranger = connect(url, "wrong");
  await assert.rejects(stranger.store.info({}), (error: unknown) => error instanceof ConnectError && error.code === Code.Unauthenticated);
  assert.throws(() => connect(`${url}/?token=${token}`, ""), TypeError);
  await assert.rejects(async () => {
    for await (const _ of stranger.agents.follow("any")) {
      assert.fail("nothing may come");
    }
  }, ConnectError);
});

test("conversations are saved and read", async () => {
  const { conversation } = await stet.conversations.create({ title: "from Node" });
  assert.ok(conversation);
  const turn = { turn: { case: "agentConversationTurn", value: { userMessage: { text: "hello", messageId: "m1" } } } } as const;
  const { save } = await stet.conversations.save({
    id: conversation.id, epoch: conversation.epoch, state: { case: "inline", value: { turns: [turn] } },
  });
  assert.equal(save?.turns, 1);
  const transcript = await stet.conversations.transcript({ id: conversation.id });
  assert.deepEqual(transcript.messages.map((message) => message.text), ["hello"]);
});

test("agents are listed, and following one that is missing ends", async () => {
  const agent = await stet.agents.create({ name: "listed" });
  const names: string[] = [];
  for await (const one of stet.agents.list()) {
    names.push(one.id);
  }
  assert.ok(names.includes(agent.id));
  await assert.rejects(async () => {
    for await (const _ of stet.agents.follow("there is none")) {
      assert.fail("nothing may come");
    }
  }, (error: unknown) => error instanceof ConnectError && error.code === Code.NotFound);
});

test("a follower can be stopped, and goes on after any offset", async () => {
  const agent = await stet.agents.create({ name: "stopped" });
  const offset = await stet.agents.append(agent.id, [text("one")]);
  await stet.agents.append(agent.id, [text("two"), text("three")]);
  const got: string[] = [];
  for await (const event of stet.agents.follow(agent.id, { after: offset })) {
    got.push(textOf(event) ?? event.kind);
    if (got.length === 2) {
      break;
    }
  }
  assert.deepEqual(got, ["two", "three"]);
  const stop = new AbortController();
  await assert.rejects(async () => {
    for await (const _ of stet.agents.follow(agent.id, { signal: stop.signal })) {
      stop.abort();
    }
  }, { name: "AbortError" });
});

// proxy passes bytes on and drops connections without a word.
async function proxy(t: { after(fn: () => void): void }): Promise<{ url: string; cut(): void }> {
  const sockets = new Set<Socket>();
  const target = new URL(url);
  const server = createServer((near) => {
    const far = dial(Number(target.port), target.hostname);
    for (const [from, to] of [[near, far], [far, near]] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => { sockets.delete(from); to.destroy(); });
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => sockets.forEach((socket) => socket.resetAndDestroy());
  t.after(() => { server.close(); cut(); });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut };
}

test("every event comes once and in order, whatever happens to connections", async (t) => {
  const agent = await stet.agents.create({ name: "followed" });
  const line = await proxy(t);
  const events = 300;
  const writing = (async () => {
    for (let n = 0; n < events; n += 3) {
      await stet.agents.append(agent.id, [text(`${n}`), text(`${n + 1}`), text(`${n + 2}`)], `append ${n}`);
    }
    await stet.agents.archive(agent.id);
  })();
  const got: string[] = [];
  let initial = 0;
  for await (const event of connect(line.url, token).agents.follow(agent.id, { minBackoff: 1, maxBackoff: 5 })) {
    initial += event.kind === "initial" ? 1 : 0;
    const value = textOf(event);
    if (value !== undefined && got.push(value) % 20 === 0) {
      line.cut();
    }
  }
  await writing;
  assert.equal(initial, 1);
  assert.deepEqual(got, Array.from({ length: events }, (_, n) => `${n}`));
});

// draining ends every stream properly after a few messages, as a server that stops does.
function draining(messages: number): typeof fetch {
  return async (input, init) => {
    const answer = await fetch(input, init);
    if (answer.body === null || !String(input instanceof Request ? input.url : input).includes("StreamConversation")) {
      return answer;
    }
    let left = messages;
    let held = new Uint8Array(0);
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const all = new Uint8Array(held.length + chunk.length);
        all.set(held);
        all.set(chunk, held.length);
        held = all;
        while (held.length >= 5) { // flags, length of four bytes, contents
          const size = 5 + new DataView(held.buffer, held.byteOffset).getUint32(1);
          if (held.length < size) {
            return;
          }
          if (left-- <= 0) {
            controller.enqueue(new Uint8Array([2, 0, 0, 0, 2, 123, 125])); // the end, without an error
            controller.terminate();
            return;
          }
          controller.enqueue(held.slice(0, size));
          held = held.slice(size);
        }
      },
    });
    return new Response(answer.body.pipeThrough(cut), answer);
  };
}

test("the end of a connection is not the end of an agent that has ended", async () => {
  const events = 50;
  const agent = await stet.agents.create({ name: "ended" });
  await stet.agents.append(agent.id, Array.from({ length: events }, (_, n) => text(`${n}`)));
  await stet.agents.archive(agent.id);
  for (const messages of [2, 3, 7, 1000]) {
    const got: string[] = [];
    let initial = 0;
    for await (const event of connect(url, token, { fetch: draining(messages) }).agents.follow(agent.id, { minBackoff: 1, maxBackoff: 1 })) {
      initial += event.kind === "initial" ? 1 : 0;
      const value = textOf(event);
      if (value !== undefined) {
        got.push(value);
      }
    }
    assert.equal(initial, 1);
    assert.deepEqual(got, Array.from({ length: events }, (_, n) => `${n}`));
  }
});
