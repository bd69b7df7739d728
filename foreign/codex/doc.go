// Package codex reads, connects and cuts sessions of the Codex command line.
//
// Codex keeps a session as a rollout: a file of JSON lines in
// $CODEX_HOME/sessions/YEAR/MONTH/DAY, called rollout-TIME-ID.jsonl. The package
// promises to read all of a session although its lines may be spread over several
// files: a fork holds only its own lines and names its origin, and a session that was
// reverted continues in a second file, rollout-TIME-ID_SEGMENT.jsonl, that names the
// line after which it continues. It also promises that each text is read once
// although Codex records most of them twice, as an item of the model's conversation
// and as an event for its own screen, and that context that Codex adds by itself is
// not mistaken for a prompt. Codex compresses old rollouts to
// rollout-TIME-ID.jsonl.zst; such a file is read like the uncompressed one.
//
// A cut is a complete copy of the conversation up to a turn, under a new id. The
// database beside the rollouts is neither read nor changed: Codex finds the copy by
// its name.
//
// Codex runs hooks only after the user has approved them in the program. Giving that
// approval is left to the user, and copying sessions to package intake.
package codex
