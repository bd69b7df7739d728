// Package timeline shows the history of a workspace or a conversation as people see
// it: checkpoints with the branches that rewinds left behind, the gaps where
// checkpoints were forgotten, and what each turn asked for, changed and took.
//
// It only reads, and returns values: it prints nothing, and knows neither terminals
// nor pages. The command line and the server show what it returns, so that both show
// the same history.
//
//	reader := timeline.New(checkpoints, conversations)
//	history, err := reader.Read(ctx, timeline.Scope{Conversation: id})
//	for _, e := range history.Entries {  // newest first
//		turn, err := history.Turn(ctx, e)
//		fmt.Println(e.Record.Name(), e.Left, turn.Text())
//	}
//
// The work of one conversation in one workspace is one line. A rewind moves the line
// of its conversation, or all lines if it has none, and leaves behind what came after
// its target. Other lines stay unchanged. Checkpoints of no conversation are a line,
// too.
//
// Packages checkpoint and conversation keep what is read here. Texts of messages are
// returned as they are stored; shortening and escaping are left to the front ends.
package timeline
