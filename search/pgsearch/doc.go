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
// This package splits text into words, not the database, so that both kinds of index
// agree about words; the database stores, finds and ranks them with its full-text
// search. Any number of nodes may update and search at the same time: an update locks
// the row of a conversation, then reads its state, and writes only what changed.
// Every row, and every word, carries its tenant.
//
// The tables hold plain text and can always be rebuilt. An encrypted store must not
// use them: its index is in memory, from package search without a path.
package pgsearch
