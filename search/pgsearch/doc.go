// Package pgsearch keeps the words of conversations in a Postgres database, for
// nodes that share one. It gives the same hits as the index beside an embedded
// store: see package search for queries and results.
//
//	db, err := pgsearch.Open(ctx, "postgres://…", nil)
//	defer db.Close()
//	index, err := db.Index("tenant", conversations, blobs, rows)
//	_, err = index.Update(ctx)
//	page, err := index.Search(ctx, `retry "exit code"`, nil)
//
// The words are cut here and not by the database, so that both kinds of index
// agree about what a word is; the database stores, finds and ranks them by its own
// full-text search. Any number of nodes may update and search at the same time:
// whoever updates a conversation holds its row, reads its state after that, and
// writes only what changed. Every row, and every word, carries its tenant.
//
// The tables hold plain text and can always be made anew. An encrypted store must
// not use them: its index is kept in memory, by package search without a path.
package pgsearch
