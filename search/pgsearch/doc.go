// Package pgsearch keeps the words of conversations in a Postgres database, for nodes
// that share one. It returns the same hits as the index of an embedded store: see
// package search for queries and results.
//
//	db, err := pgsearch.Open(ctx, "postgres://…", nil)
//	defer db.Close()
//	index, err := db.Index("tenant", conversations, blobs, rows)
//	_, err = index.Update(ctx)
//	page, err := index.Search(ctx, `retry "exit code"`, nil)
//
// Index.Work keeps an index up to date in the background, a bounded piece at a time. Any
// number of nodes may call it and search; one at a time changes an index, under a lease, and
// another one goes on where it was killed. Beside removes what leaves a store in the
// transaction that removes it.
//
// The index is one of words to messages and their places, in segments that are written once
// and merged, as blocks in plain tables. The tables hold no texts: a word is a hash, and the
// text of a hit is read from its conversation. They can always be rebuilt. They show titles
// and sizes, so an encrypted store must not use them: its index is in memory, from package
// search without a path.
package pgsearch
