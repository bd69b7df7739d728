/** The number of rows of a list, unless a filter says another. */
const pageRows = 50;

/** A part of a list and the key of its last row, if more follow. */
export function page<T>(rows: readonly T[], limit = pageRows): { rows: T[]; last?: T } {
  const part = rows.slice(0, limit);
  const last = part.at(-1);
  return rows.length > limit && last !== undefined ? { rows: part, last } : { rows: part };
}

/** Orders texts by their characters, as cursors do. */
export function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A cursor as the SDK writes it: JSON in base64url. */
export function toCursor(key: object): string {
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}

/** Reads a cursor whose fields have the types of an example; undefined for an absent one. */
export function fromCursor<T extends Record<string, string | number>>(cursor: string | undefined, like: T, what: string): T | undefined {
  if (cursor === undefined || cursor === "") {
    return undefined;
  }
  const key = object(cursor);
  if (key === undefined) {
    throw new Error("Invalid list cursor");
  }
  if (Object.entries(like).some(([field, value]) => typeof key[field] !== typeof value)) {
    throw new Error(`Invalid ${what} list cursor`);
  }
  return key as T;
}

function object(cursor: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a filter that names ids, or none, lets an id through. */
export function lets(ids: readonly string[] | undefined, id: string): boolean {
  return ids === undefined || ids.length === 0 || ids.includes(id);
}
