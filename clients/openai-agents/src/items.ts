import { Buffer } from "node:buffer";

import type { AgentInputItem } from "@openai/agents-core";

/** A value as JSON has it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Returns an item as JSON. Bytes become { "$bytes": base64 }, and properties that are
 * undefined are left out. It fails for what would not come back: items are kept whole or not
 * at all.
 */
export function toJson(item: AgentInputItem): Json {
  // The clone has no prototypes, getters or functions of the caller.
  return json(structuredClone(item), new Set());
}

/** Returns the item that `toJson` was given. */
export function fromJson(value: Json): AgentInputItem {
  return plain(value) as AgentInputItem;
}

/** Returns a text that is the same for equal values, whatever the order of their properties. */
export function canonical(value: Json): string {
  return JSON.stringify(value, (_, part: Json) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

/** Is the only property of what stands for bytes; with more $ it stands for itself. */
const bytes = /^\$+bytes$/;

function json(value: unknown, within: Set<object>): Json {
  if (value === null || typeof value === "boolean" || typeof value === "string") {
    return value;
  }
  if (typeof value === "number" && Number.isFinite(value)) {
    return value;
  }
  if (typeOf(value) === "Uint8Array") {
    return { $bytes: Buffer.from(value as Uint8Array).toString("base64") };
  }
  if (typeof value !== "object" || within.has(value) || !(Array.isArray(value) || typeOf(value) === "Object")) {
    throw new TypeError(`an item cannot be kept: it contains ${describe(value)}`);
  }
  within.add(value);
  const result = Array.isArray(value) ? Array.from(value, (one) => json(one, within)) : object(value as Record<string, unknown>, within);
  within.delete(value);
  return result;
}

function object(value: Record<string, unknown>, within: Set<object>): Json {
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  const alone = entries.length === 1 && bytes.test(entries[0]![0]);
  return Object.fromEntries(entries.map(([key, one]) => [alone ? `$${key}` : key, json(one, within)]));
}

function describe(value: unknown): string {
  if (typeof value === "object") {
    return typeOf(value) === "Object" || Array.isArray(value) ? "itself" : `a value of type ${typeOf(value)}`;
  }
  return typeof value === "bigint" ? "a bigint" : String(value);
}

/** Returns the type of a value, also of one from another realm, as test runners have them. */
function typeOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function plain(value: Json): unknown {
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  const entries = Object.entries(value);
  const [key, only] = entries[0] ?? [];
  if (entries.length !== 1 || key === undefined || !bytes.test(key)) {
    return Object.fromEntries(entries.map(([name, one]) => [name, plain(one)]));
  }
  if (key === "$bytes") {
    return new Uint8Array(Buffer.from(only as string, "base64"));
  }
  return { [key.slice(1)]: plain(only as Json) };
}
