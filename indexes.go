package stet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// UpdateIndexes updates the indexes that make lists and searches fast: the lists of
// conversations by workspace and agent, and the word index if it is a file. It can be
// interrupted at any time and continued later, and may run while other callers and
// processes write. progress, if set, is called with the number of conversations listed so
// far.
func (db *DB) UpdateIndexes(ctx context.Context, progress func(done int)) error {
	err := db.conversations.FileAll(ctx, progress)
	if err != nil || !db.wordsInFile() {
		return err
	}
	return db.updateWords(ctx)
}

// wordsInFile reports whether the word index is a file of this store.
func (db *DB) wordsInFile() bool {
	return db.engine != nil && !db.engine.ReadOnly() && db.ring == nil && db.openSearch == nil
}

func (db *DB) updateWords(ctx context.Context) error {
	index, err := db.Search(ctx)
	if err == nil {
		err = index.Degraded()
	}
	if err == nil {
		_, err = index.Update(ctx)
	}
	return err
}

// manyChanges is the number of changed conversations from which it pays to start a
// process that updates the word index. A search updates fewer by itself.
const manyChanges = 400

// IndexesWait reports whether UpdateIndexes has much to do.
func (db *DB) IndexesWait(ctx context.Context) (bool, error) {
	if db.engine == nil || db.engine.ReadOnly() {
		return false, nil
	}
	unfiled, err := db.conversations.Unfiled(ctx)
	if err != nil || unfiled || !db.wordsInFile() {
		return unfiled, err
	}
	n := 0
	for _, err := range db.rows.Scan(ctx, keyspace.AllChanged(), kv.ScanOptions{KeysOnly: true, Limit: manyChanges + 1}) {
		if err != nil {
			return false, fmt.Errorf("count changed conversations: %w", err)
		}
		n++
	}
	return n > manyChanges, nil
}

// savesTogether is how long KeepIndexes waits after a change for more of them.
const savesTogether = 500 * time.Millisecond

// KeepIndexes updates the indexes now, and the word index whenever a conversation
// changes, until ctx is done. It is for long-running processes such as a server: searches
// then find the index up to date. It returns the error of an update that failed.
func (db *DB) KeepIndexes(ctx context.Context) error {
	if !db.wordsInFile() {
		if db.engine == nil || db.engine.ReadOnly() {
			return nil
		}
		return ended(ctx, db.UpdateIndexes(ctx, nil))
	}
	hints := db.rows.Watch(ctx, keyspace.AllChanged()) // before the first update, so that no change is missed
	if err := db.UpdateIndexes(ctx, nil); err != nil {
		return ended(ctx, err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hints:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(savesTogether):
		}
		if err := db.updateWords(ctx); err != nil {
			return ended(ctx, err)
		}
	}
}

// ended drops the error of work whose context has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
