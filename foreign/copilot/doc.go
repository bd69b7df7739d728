// Package copilot reads, connects and cuts sessions of the GitHub Copilot command line.
//
// Copilot keeps a session in a directory, ~/.copilot/session-state/ID: events.jsonl
// has one event per line, including those of the session's subagents. The package
// promises that subagents are separate sessions although they share that file, and
// that a turn is one prompt with all rounds of the model that answer it; Copilot
// itself calls a round a turn.
//
// A cut is a new directory with the events up to the end of a turn, under a new id.
// Copilot denies a tool if a hook before it fails for any reason, so the commands
// that the package connects always succeed, even if the program is missing.
package copilot
