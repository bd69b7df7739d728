// Package transfer moves conversations and their checkpoints from one store to
// another, wherever the two are.
//
// Only blobs that the other side lacks are sent. A save, and a checkpoint, becomes
// visible there by one commit that names its blobs, so nothing is ever visible
// that is not whole and durable; a transfer that was cut anywhere is resumed by
// doing it again. A conversation that went on at both sides has diverged: it is
// left alone unless Options.Force says otherwise, and then the saves of the other
// side stay as a branch.
//
//	report, err := transfer.Run(ctx, here, there, nil, nil)
//	for _, c := range report.Conversations {
//		fmt.Println(c.ID, c.Status, c.Saves)
//	}
//
// What an encrypted store holds is not written to one that is not, unless
// Options.AllowPlain says so: the two sides seal with their own keys, and what
// goes between them is protected by the connection only. Agents, pins and the log
// of operations belong to a store and stay there.
package transfer
