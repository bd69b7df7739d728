// Package search finds words in conversations: in what users asked and agents
// answered, in thinking, in the input and output of tools, in paths and titles.
//
// An Index is derived from the conversations' current states, and from the
// branches that were left by going back, and can always be made anew: a damaged index, or one of an older release, is thrown away and
// built again. Update brings it up to date, whoever saved in between, and reads
// only the turns that changed:
//
//	index, err := search.Open(ctx, conversations, blobs, rows, &search.Options{Path: dir + "/search.db"})
//	defer index.Close()
//	_, err = index.Update(ctx)
//	page, err := index.Search(ctx, `retry "exit code" tool:shell path:checkout`, nil)
//
// Queries are words, all of which must occur; the last one, from three letters
// on, may be the beginning of a word. Quotes make a phrase, and path:, tool: and
// role: narrow the search. No input is a syntax error.
//
// The index holds plain text. For an encrypted store leave Path empty: the index
// is then kept in memory only and nothing readable reaches the disk.
package search
