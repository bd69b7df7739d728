// Package transfer moves conversations with all that belongs to them, or everything,
// from one store to another, local or remote.
//
// Only blobs that the other side lacks are sent. A save or checkpoint becomes visible
// there by one commit that names its blobs, so everything visible is complete and
// durable. An interrupted transfer is resumed by repeating it. A conversation that
// was continued on both sides has diverged: it is left alone unless Options.Force is
// set; then the saves of the other side stay as a branch.
//
//	report, err := transfer.Run(ctx, here, there, nil, nil)
//	for _, c := range report.Conversations {
//		fmt.Println(c.ID, c.Status, c.Saves)
//	}
//
// If the other side is a server that takes only whole conversations, one side sends and the
// other receives: Needed determines what is missing, Send emits it in parts, and Receive
// collects the parts, checks the whole and moves it as Run does.
//
// Data of an encrypted store is not written to an unencrypted one, unless
// Options.AllowPlain is set: the two sides seal with their own keys, and only the
// connection protects the data in between.
//
// With Options.Everything the target is a backup: it also gets checkpoints without a
// conversation, agents with their logs, threads, documents, streams, pins and the log of
// operations. Rows that differ at the target stay there and are named in the report. Settings, marks, running rewinds
// and quarantined rows are not moved, nor is what belongs to one store alone: the writer
// and epoch of a conversation and the nonce of a workspace are new, and checkpoints say
// that they were received.
package transfer
