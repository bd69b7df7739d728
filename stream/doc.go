// Package stream stores streams: ordered, durable logs of bytes or JSON messages
// under a path, which can be followed, closed and forked, and can expire.
//
// A stream has a record, and a row for each append. An append is one commit: its
// content, the new end, the state of its producer and the close appear together or
// not at all, and are durable when the call returns. Appends that wait for each other
// share a commit.
//
//	streams := stream.New(blobs, rows, nil)
//	_, _, err := streams.Create(ctx, "answers/1", stream.Config{ContentType: "text/plain"}, nil)
//	done, err := streams.Append(ctx, "answers/1", stream.Append{ContentType: "text/plain", Data: data})
//	f := streams.Follow(ctx, "answers/1", stream.Offset{}, nil)
//	batch, err := f.Next(ctx) // blocks at the end
//
// An [Offset] is a place between two appends. Data before it never changes. A
// producer that numbers its appends can repeat one whose answer was lost: it is
// stored once. A fork shares everything before a place with its source, without a
// copy, and has its own appends from there; a deleted source stays for its forks.
//
// Each operation means what the Durable Streams protocol says. HTTP, access control
// and limits are left to package server.
package stream
