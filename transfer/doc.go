// Package transfer moves conversations and their checkpoints from one store to
// another, local or remote.
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
// Data of an encrypted store is not written to an unencrypted one, unless
// Options.AllowPlain is set: the two sides seal with their own keys, and only the
// connection protects the data in between. Agents, pins and the log of operations
// belong to a store and are not transferred.
package transfer
