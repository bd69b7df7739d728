// Package agenttools lets a coding agent use its own history: look at what happened,
// search all conversations, preview a rewind, and revert its own work. It serves
// these tools over the Model Context Protocol.
//
//	tools := agenttools.New(open, &agenttools.Options{Session: id})
//	err := tools.Serve(ctx, os.Stdin, os.Stdout)
//
// The package promises:
//
//   - A rewind needs the token of a preview and does exactly what that preview listed, or
//     nothing. Unless the call requests more, it reverts only what the calling session
//     changed. The agent's conversation stays where it is.
//   - An undo reverts only a rewind that the calling session made, unless the call
//     requests more.
//   - Answers are short Markdown. If something is left out, the answer says how to get
//     it. Failures are answers, too: no call and no line of input ends the server.
//   - Each call opens the store and closes it again, so that a server without a store, or
//     with a busy or locked one, works as soon as the store does.
//
// Packages timeline, transcript, search, linediff and checkpoint provide what the
// tools show and do. The caller chooses the store and the directory.
package agenttools
