// Package stream keeps streams: ordered, durable logs of bytes or JSON messages under a
// path, which can be followed, closed, forked, and left to expire.
//
// A stream has a record, and a row for each append. An append is one commit: its content,
// the new end, the state of its producer and the closing appear together or not at all,
// and are durable when the call returns. Appends that wait for each other share a commit.
//
//	streams := stream.New(blobs, rows, nil)
//	_, _, err := streams.Create(ctx, "answers/1", stream.Config{ContentType: "text/plain"}, nil)
//	done, err := streams.Append(ctx, "answers/1", stream.Append{ContentType: "text/plain", Data: data})
//	f := streams.Follow(ctx, "answers/1", stream.Offset{}, nil)
//	batch, err := f.Next(ctx) // blocks at the end
//
// An [Offset] is a place between two appends. What lies before it never changes. A
// producer that numbers its appends can repeat one whose answer was lost: it is stored
// once. A fork has everything of its source up to a place without a copy of it, and goes
// its own way from there; a deleted source stays for its forks.
//
// The meaning of each operation is that of the Durable Streams protocol. HTTP, access
// control and limits are left to package server.
package stream
