// Package kvstream carries blobs over the key-value messages of agent.v1, in
// which the server asks and the client, who keeps the blobs, answers.
//
// The client answers from its local store:
//
//	err := kvstream.Serve(ctx, in, out, local, nil)
//
// The server uses the client as a blob.Store:
//
//	remote := kvstream.New(out, nil)
//	go remote.Run(in)            // answers find their requests
//	err := remote.Put(ctx, b)    // returns when the client has it for good
//	data, err := remote.Get(ctx, id)
//
// Where the messages share a stream with others, as in AgentService.Run, the
// reader of that stream passes them on instead: [Responder.Handle] on the client,
// [Store.Deliver] and [Store.CloseWithError] on the server; [ClientFrames] and
// [ServerFrames] wrap what is sent.
//
// Both sides take the other for a stranger: ids are verified, sizes, numbers and
// times are bounded, and nothing that arrives can make them wait for ever, grow
// or return other bytes. A slow peer slows its own requests down.
//
// Opening a stream, reconnecting and caching are left to others. A Store ends
// with its stream; what it acknowledged is on the other side by then. The
// messages and their limits are described in docs/format/kvstream.md.
package kvstream
