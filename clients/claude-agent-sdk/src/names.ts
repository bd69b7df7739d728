import type { SessionKey } from "@anthropic-ai/claude-agent-sdk";

/**
 * The names of the documents of a transcript. Those of all sessions of a project, of all
 * subagents of a session and of all parts of a transcript have a prefix in common, and no
 * key is a prefix of another one's names.
 */
export interface Names {
  /** Begins the names of nothing but this session, its head excepted. */
  readonly session: string;
  /** The document that says what is there. */
  readonly head: string;
  /** Begins the names of all parts. */
  readonly parts: string;
}

/** Returns the names for a transcript, or says what is wrong with its key. */
export function names({ projectKey, sessionId, subpath }: SessionKey): Names {
  const session = `${escaped("projectKey", projectKey)}/${escaped("sessionId", sessionId)}`;
  if (subpath === undefined) {
    return { session, head: `session/${session}`, parts: `part/${session}//` };
  }
  const sub = escaped("subpath", subpath);
  return { session, head: `sub/${session}/${sub}`, parts: `part/${session}/${sub}/` };
}

/** Begins the names of the heads of a project's sessions. */
export function sessionsOf(projectKey: string): string {
  return `session/${escaped("projectKey", projectKey)}/`;
}

/** Begins the names of the heads of a session's subagents. */
export function subagentsOf(session: string): string {
  return `sub/${session}/`;
}

/** Begins the names of the parts of all transcripts of a session. */
export function partsOf(session: string): string {
  return `part/${session}/`;
}

/** Returns what `escaped` has made a part of a name. */
export function unescaped(part: string): string {
  return part.replace(/%([0-9A-F]{2})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
}

/** Replaces what separates the parts of a name, and what names may not have. */
function escaped(field: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`"${field}" of a session key must be a text that is not empty`);
  }
  if (/[\ud800-\udfff]/u.test(value)) {
    throw new TypeError(`"${field}" of a session key is not valid Unicode`);
  }
  return value.replace(/[%/\x00-\x1f\x7f]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
}
