import { ConnectError } from "@connectrpc/connect";

/** The classes of errors, from the least to the most serious. docs/SERVER.md says what they mean. */
export const classes = [
  "not-found",
  "invalid",
  "exists",
  "stale",
  "conflict",
  "unsupported",
  "busy",
  "closed",
  "canceled",
  "unreachable",
  "denied",
  "exhausted",
  "read-only",
  "wrong-key",
  "newer-format",
  "rolled-back",
  "uncertain",
  "damaged",
] as const;

export type Class = (typeof classes)[number];

/** The reasons that a server of this release sends. Later ones may send others. */
export const reasons = [
  "agent-changed",
  "agent-copy",
  "agent-data-loss",
  "agent-exists",
  "agent-not-found",
  "already-archived",
  "ambiguous-reference",
  "archived",
  "bad-checkpoint",
  "bad-json-checkpoint",
  "bad-path",
  "bad-reference",
  "bad-tree",
  "blob-not-found",
  "blob-too-large",
  "bucket-unreachable",
  "busy",
  "changed-while-archived",
  "checkpoint-not-found",
  "checkpoints-disabled",
  "conversation-data-loss",
  "conversation-exists",
  "conversation-not-found",
  "conversation-read-only",
  "corrupt-blob",
  "corrupt-keyring",
  "corrupt-row",
  "damaged-pack",
  "damaged-store",
  "database-unreachable",
  "empty-query",
  "expired",
  "file-changed",
  "file-system-slow",
  "files-changed",
  "full",
  "index-closed",
  "invalid-agent",
  "invalid-batch",
  "invalid-conversation",
  "invalid-cursor",
  "invalid-id",
  "invalid-keep",
  "invalid-key",
  "invalid-offset",
  "json-checkpoint-changed",
  "json-checkpoint-not-found",
  "key-in-use",
  "limit-exceeded",
  "limit-reached",
  "locked",
  "malformed-blob",
  "malformed-message",
  "migrating",
  "mismatch",
  "newer-checkpoint",
  "newer-database",
  "newer-envelope",
  "newer-format",
  "newer-keyring",
  "newer-metadata",
  "newer-pack",
  "newer-row-envelope",
  "newer-search-file",
  "newer-search-tables",
  "newer-store",
  "no-conversations",
  "no-inventory",
  "no-key",
  "no-keyring",
  "no-pack-bucket",
  "no-presigner",
  "no-process",
  "no-quarantine",
  "not-archived",
  "not-encrypted",
  "not-idle",
  "not-moved",
  "nothing-to-archive",
  "nothing-to-undo",
  "other-file-system",
  "other-workspace",
  "partial-state",
  "path-leads-out",
  "path-not-found",
  "read-only",
  "rewind-interrupted",
  "rolled-back",
  "root-refused",
  "row-conflict",
  "row-not-found",
  "row-too-large",
  "stale-plan",
  "stale-writer",
  "store-closed",
  "too-deep",
  "too-many-tenants",
  "uncertain",
  "unknown-key",
  "unknown-outcome",
  "update-too-large",
  "workspace-busy",
  "wrong-key",
  "wrong-keyring-key",
  "wrong-log",
] as const;

export type Reason = (typeof reasons)[number];

/** The class that the server gave an error, or undefined. */
export function classOf(err: unknown): Class | undefined {
  const sent = ConnectError.from(err).metadata.get("Stet-Error-Class");
  return classes.find((c) => c === sent);
}

/** The reasons of an error, the most serious one first. It has none if the server named none. */
export function reasonsOf(err: unknown): string[] {
  const sent = ConnectError.from(err).metadata.get("Stet-Error") ?? "";
  return sent.split(",").map((r) => r.trim()).filter((r) => r !== "");
}

/** Whether an error has a reason. */
export function hasReason(err: unknown, reason: Reason): boolean {
  return reasonsOf(err).includes(reason);
}
