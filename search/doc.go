// Package search finds words in conversations: in user messages, answers, thinking,
// in the input and output of tools, in paths and titles.
//
// An Index is derived from the conversations' current states and from branches that a
// rewind left behind. It can always be rebuilt: a damaged index, or one of an older
// release, is discarded and built again. Update brings it up to date with the saves
// of all processes and reads only the turns that changed:
//
//	index, err := search.Open(ctx, conversations, blobs, rows, &search.Options{Path: dir + "/search.db"})
//	defer index.Close()
//	_, err = index.Update(ctx)
//	page, err := index.Search(ctx, `retry "exit code" tool:shell path:checkout`, nil)
//
// Queries are words, all of which must occur; the last one, if it has three letters
// or more, may be the beginning of a word. Quotes make a phrase, and path:, tool: and
// role: narrow the search. No input is a syntax error.
//
// The index holds plain text. For an encrypted store leave Path empty: the index is
// then only in memory, and no plain text reaches the disk.
package search
