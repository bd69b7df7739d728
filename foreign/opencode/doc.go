// Package opencode is the adapter of OpenCode.
//
// OpenCode keeps all sessions in one SQLite database,
// ~/.local/share/opencode/opencode.db, which it has open while it runs. The package
// promises to read it without changing a byte in it or beside it, without blocking
// it, and turn by turn, so that memory does not depend on the size of the database. A
// turn is a user message with the messages that answer it; subagents are sessions
// with a parent.
//
// OpenCode loads plugins into its process. The one of this package, [Adapter.Connection],
// runs a command at each event, catches every error and waits only for a bounded time: a
// plugin that fails before a tool stops the tool.
//
// A cut is a file in the form of `opencode export`, with the messages up to a turn
// and new ids. The new session exists only after `opencode import`, so only OpenCode
// changes the database.
package opencode
