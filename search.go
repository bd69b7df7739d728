package stet

import (
	"context"
	"path/filepath"

	"github.com/stet-dev/stet/search"
)

// SearchName is the name of the search index in the directory of a store.
const SearchName = "search.db"

// Search returns the word index of the store. It is opened at the first call and closed
// with the store; Update brings it up to date. The index of an encrypted or remote store
// is in memory, because a file would reveal what the store hides, or be on the wrong
// machine.
func (db *DB) Search(ctx context.Context) (search.Searcher, error) {
	db.searchMu.Lock()
	defer db.searchMu.Unlock()
	if db.search != nil {
		return db.search, nil
	}
	index, err := db.newSearch(ctx)
	if err != nil {
		return nil, err
	}
	db.search = index
	return index, nil
}

func (db *DB) newSearch(ctx context.Context) (search.Searcher, error) {
	if db.openSearch != nil && db.ring == nil {
		return db.openSearch(ctx, db.conversations, db.blobs, db.rows)
	}
	opts := &search.Options{}
	if db.engine != nil && db.ring == nil {
		opts.Path = filepath.Join(db.engine.Dir(), SearchName)
	}
	index, err := search.Open(ctx, db.conversations, db.blobs, db.rows, opts)
	if err != nil {
		return nil, err
	}
	return index, nil
}

// closeSearch closes the index if there is one.
func (db *DB) closeSearch() error {
	db.searchMu.Lock()
	defer db.searchMu.Unlock()
	if db.search == nil {
		return nil
	}
	index := db.search
	db.search = nil
	return index.Close()
}
