// Package conversation keeps the states of conversations and their history.
//
// A state is a root: the id of a blob that names the blobs of its turns, to-dos,
// summaries and files. Store keeps, for each conversation, a record, a pointer to the
// current root and one row for every save; the saves form a tree, so going back loses
// nothing. Saving costs the same at turn 10 and at turn 10,000: only new blobs are
// written, and the new root is stored as an extension of the one before.
//
//	store := conversation.New(blobs, rows, nil)
//	c, err := store.Create(ctx, conversation.Info{Title: "add retry"})
//	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "hello"})
//	err = c.AppendTurn(ctx, turn)
//	saved, err := c.Save(ctx, nil)  // all of it is durable, or nothing
//	state, err := store.Hydrate(ctx, c.ID(), nil)
//
// One handle at a time may write to a conversation: opening takes a new epoch, and a
// save of an older handle fails with ErrStale. Package graph defines which blobs a
// state refers to; collections, checks and transfers use it. Other packages search,
// export as text and keep the files of the workspace.
package conversation
