import type { Client } from "@connectrpc/connect";

import type { BlobService } from "./gen/stet/v1/store_service_pb.js";

/** The content limit of one message; the server accepts 4 MiB. */
const messageBytes = 3 << 20;

/** The number of ids in one request. */
const hasIds = 4096;

/** A server returned bytes that do not match the id. */
export class BlobMismatchError extends Error {
  override readonly name = "BlobMismatchError";
}

/** Returns the id of bytes: their SHA-256. */
export async function sha256(data: Uint8Array): Promise<Uint8Array> {
  // In Node 18 it is not a global.
  const subtle = globalThis.crypto?.subtle ?? (await import("node:crypto")).webcrypto.subtle;
  return new Uint8Array(await subtle.digest("SHA-256", data.slice()));
}

/** Returns an id as hexadecimal digits. */
export function hex(id: Uint8Array): string {
  return Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Immutable bytes by their SHA-256, checked on the way in and out. */
export class Blobs {
  constructor(private readonly service: Client<typeof BlobService>) {}

  /**
   * Stores bytes of any size and returns their id. They can be read when this returns, and
   * are durable after `flush` or after saving a state that names them.
   */
  async put(data: Uint8Array): Promise<Uint8Array> {
    let id = await this.extend(data, 0, undefined);
    for (let from = messageBytes; from < data.length; from += messageBytes) {
      id = await this.extend(data, from, id);
    }
    return id;
  }

  /**
   * Stores the beginning of data: one message more than the bytes before from, which are
   * stored as a blob.
   */
  private async extend(data: Uint8Array, from: number, like: Uint8Array | undefined): Promise<Uint8Array> {
    const end = from + messageBytes;
    const id = await sha256(data.subarray(0, end));
    const part = { id, data: data.subarray(from, end) };
    await this.service.put({ blobs: [like === undefined ? part : { ...part, like, keep: BigInt(from) }] });
    return id;
  }

  /** Returns the bytes of an id, of any size; fails with code NotFound if missing. */
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
      throw new BlobMismatchError(`the server returned wrong bytes for ${hex(id)}`);
    }
    return data;
  }

  /** Reports for each id whether it is stored. */
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

  /** Returns once everything put before is durable. */
  async flush(): Promise<void> {
    await this.service.flush({});
  }
}
