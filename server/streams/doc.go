// Package streams serves the streams of a store over the Durable Streams protocol: HTTP
// on one address for each stream.
//
//	mux.Handle(streams.Prefix, streams.New(stream.New(blobs, rows, nil), nil))
//
// PUT creates a stream, POST appends to it and closes it, GET reads it (all there is,
// or live, by long-poll or server-sent events), HEAD describes it, DELETE removes it.
// The package turns headers into calls of package stream and results into headers;
// that package defines what the calls mean. [Options], which package server fills in,
// define who may call, what is counted and what is recorded.
package streams
