package stet

import "context"

// UpdateIndexes brings up to date what makes lists fast: the lists of conversations by
// workspace and agent. Stores of this release are up to date; those that an earlier one
// filled need it once. It can be ended at any time and continued, beside writers.
// progress, if set, is called with the number of conversations read.
func (db *DB) UpdateIndexes(ctx context.Context, progress func(done int)) error {
	return db.conversations.FileAll(ctx, progress)
}

// IndexesWait reports whether UpdateIndexes has much to do.
func (db *DB) IndexesWait(ctx context.Context) (bool, error) {
	if db.engine == nil || db.engine.ReadOnly() {
		return false, nil
	}
	return db.conversations.Unfiled(ctx)
}
