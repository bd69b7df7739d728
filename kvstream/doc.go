// Package kvstream transfers blobs over the key-value messages of agent.v1, in which
// the server sends requests and the client, which has the blobs, answers.
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
// If the messages share a stream with others, as in AgentService.Run, the reader of
// that stream passes them on: [Responder.Handle] on the client, [Store.Deliver] and
// [Store.CloseWithError] on the server; [ClientFrames] and [ServerFrames] wrap what
// is sent.
//
// Neither side trusts the other: ids are verified, sizes, numbers and times are
// limited, and no message can make a side block forever, grow without limit or return
// wrong bytes. A slow peer slows down its own requests.
//
// Opening a stream, reconnecting and caching are left to others. A Store ends with
// its stream; everything it acknowledged is stored by the peer.
// docs/format/kvstream.md describes the messages and their limits.
package kvstream
