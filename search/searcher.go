package search

import "context"

// Searcher finds words in the conversations of a store. Index is the one for an
// embedded store; others use a database that several nodes share. All return the same
// hits for the same query, but with different scores.
type Searcher interface {
	// Update brings the named conversations up to date or, without names, all.
	Update(ctx context.Context, conversations ...string) (Stats, error)
	// Progress returns how many conversations the running updates change, and how many
	// of them are done; zeros while none runs.
	Progress() (done, total int)
	// Rebuild rebuilds the index from nothing.
	Rebuild(ctx context.Context) (Stats, error)
	// Search returns a page of the messages that match a query, as of the last
	// Update.
	Search(ctx context.Context, text string, opts *SearchOptions) (Page, error)
	// Degraded returns why the index is not where it should be, or nil.
	Degraded() error
	// Close releases the index after running calls have ended.
	Close() error
}

var _ Searcher = (*Index)(nil)
