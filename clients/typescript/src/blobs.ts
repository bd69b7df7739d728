import type { Client } from "@connectrpc/connect";

import type { BlobService } from "./gen/stet/v1/store_service_pb.js";

/** What fits into one message with room to spare; the server takes 4 MiB. */
const messageBytes = 3 << 20;

/** How many ids are asked for at once. */
const hasIds = 4096;

/** Says that a server returned other bytes than those that the id names. */
export class BlobMismatchError extends Error {
  override readonly name = "BlobMismatchError";
}

/** Returns the id of bytes: their SHA-256. */
export async function sha256(data: Uint8Array): Promise<Uint8Array> {
  // Node 18 has it, but not as a global.
  const subtle = globalThis.crypto?.subtle ?? (await import("node:crypto")).webcrypto.subtle;
  return new Uint8Array(await subtle.digest("SHA-256", data.slice()));
}

/** Spells an id. */
export function hex(id: Uint8Array): string {
  return Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Immutable bytes by their SHA-256, checked on the way in and out. */
export class Blobs {
  constructor(private readonly service: Client<typeof BlobService>) {}

  /**
   * Stores bytes and returns their id. They can be read when this returns and are
   * durable after `flush`, or when a state that names them is saved.
   */
  async put(data: Uint8Array): Promise<Uint8Array> {
    if (data.length > messageBytes) {
      throw new RangeError(`${data.length} bytes do not fit into one message; store them in parts of at most ${messageBytes}`);
    }
    const id = await sha256(data);
    await this.service.put({ blobs: [{ id, data }] });
    return id;
  }

  /** Returns the bytes of an id, of any size; code NotFound if there are none. */
  async get(id: Uint8Array, signal?: AbortSignal): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const part of this.service.open({ id }, signal === undefined ? {} : { signal })) {
      chunks.push(part.chunk);
      size += part.chunk.length;
    }
    const data = new Uint8Array(size);
    let at = 0;
    for (const chunk of chunks) {
      data.set(chunk, at);
      at += chunk.length;
    }
    if (hex(await sha256(data)) !== hex(id)) {
      throw new BlobMismatchError(`the server returned other bytes for ${hex(id)}`);
    }
    return data;
  }

  /** Tells for each id whether it is stored. */
  async has(...ids: Uint8Array[]): Promise<boolean[]> {
    const has: boolean[] = [];
    for (let from = 0; from < ids.length; from += hasIds) {
      const batch = ids.slice(from, from + hasIds);
      const answer = await this.service.has({ ids: batch });
      if (answer.has.length !== batch.length) {
        throw new Error(`asked for ${batch.length} blobs, got ${answer.has.length} answers`);
      }
      has.push(...answer.has);
    }
    return has;
  }

  /** Returns when everything that was put is durable. */
  async flush(): Promise<void> {
    await this.service.flush({});
  }
}
