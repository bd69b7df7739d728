package search

import "context"

// Searcher finds words in the conversations of a store. Index is the one that is
// kept beside an embedded store; others keep what they know in a database that
// several nodes share. All give the same hits for the same query, each with a
// score of its own.
type Searcher interface {
	// Update brings the named conversations up to date or, without names, all.
	Update(ctx context.Context, conversations ...string) (Stats, error)
	// Rebuild forgets everything and makes it anew.
	Rebuild(ctx context.Context) (Stats, error)
	// Search returns a page of the messages that match a query, as of the last
	// Update.
	Search(ctx context.Context, text string, opts *SearchOptions) (Page, error)
	// Degraded returns why the index is not kept where it should be, or nil.
	Degraded() error
	// Close releases it. Calls that are under way end first.
	Close() error
}

var _ Searcher = (*Index)(nil)
