// Package pi is the adapter of the pi coding agent.
//
// pi keeps a session as one file of JSON lines below ~/.pi/agent/sessions. Its
// entries form a tree by id and parentId, and the last line is the current leaf. The
// package promises to read every branch of that tree, each turn with the turn that it
// follows, to continue reading where it stopped, and to prepare a session that
// continues after any turn as a new file beside the old one, which stays unchanged.
//
// pi has no hooks that run commands; it loads extensions. The one of this package,
// [Adapter.Connection], runs a command at each event. It catches every error and waits
// only for a bounded time: an extension that fails at a tool call stops the tool.
//
// pi has no subagents. Sessions that it does not save (--no-session) cannot be read.
package pi
