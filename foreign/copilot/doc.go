// Package copilot reads, connects and cuts sessions of the GitHub Copilot command line.
//
// Copilot keeps a session in a directory, ~/.copilot/session-state/ID: events.jsonl has
// one event in each line, also those of the session's subagents. The package promises
// that subagents are sessions of their own although they share that file, and that a turn
// is one prompt with all rounds of the model that answer it; Copilot itself calls a round
// a turn.
//
// A cut is a new directory with the events up to the end of a turn, under a new id.
// Copilot denies a tool if a hook before it fails, whatever the reason: the commands that
// the package connects always succeed, also when the program is not there.
package copilot
