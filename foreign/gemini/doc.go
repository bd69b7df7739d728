// Package gemini is the adapter of the Gemini CLI.
//
// The Gemini CLI keeps a session as a file of JSON lines below ~/.gemini/tmp, which
// is a log of changes: a line adds a message or replaces the one with the same id,
// "$set" replaces the whole list of messages, and "$rewindTo" drops a message and all
// after it. The package promises to fold that log into turns without losing what a
// later line drops: a rewound turn is still a turn, and the turn after it says which
// one it follows. It keeps only the positions of messages in the file, so its memory
// does not depend on the texts.
//
// A resumed session repeats all messages without models, tokens and the results of tools.
// The first, richer lines count; later ones only say which messages are current.
//
// A cut is a copy of the log up to the end of a turn under a new session id, which
// the CLI resumes like any other. Earlier releases wrote a session as one JSON value
// (session-*.json); such sessions are not read until the CLI has resumed and
// converted them.
package gemini
