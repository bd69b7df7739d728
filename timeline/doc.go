// Package timeline shows the history of a workspace or a conversation as people see
// it: checkpoints with the branches that rewinds left behind, the gaps where
// checkpoints were forgotten, and the prompt, changes and cost of each turn.
//
// It only reads, and returns values; it prints nothing. The command line and the
// server show its results, so both show the same history.
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
// its target. Other lines stay unchanged. Checkpoints that belong to no conversation
// form a line, too.
//
// The data comes from packages checkpoint and conversation. Texts of messages are
// returned unchanged; shortening and escaping are left to the front ends.
package timeline
