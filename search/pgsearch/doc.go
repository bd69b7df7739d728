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
// number of nodes may call it and search; only one at a time changes an index, under a
// lease, and if it is killed another one continues there. Beside removes a conversation from
// the index in the transaction that removes it from the store.
//
// The index maps words to messages and their places, in segments that are written once and
// later merged, as blocks in plain tables. The tables hold no texts: a word is a hash, and
// the text of a hit is read from its conversation. The tables can always be rebuilt. They
// show titles and sizes, so an encrypted store must not use them: its index is in memory,
// from package search without a path.
package pgsearch
