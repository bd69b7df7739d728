package stet

import (
	"path/filepath"

	"github.com/stet-dev/stet/checkpoint"
)

// IndexName is the directory, in that of an embedded store, for what is only of
// use on this machine: stat indexes and locks of workspaces.
const IndexName = "workspaces"

// Checkpoints returns the checkpoints of the store.
func (db *DB) Checkpoints() *checkpoint.Service {
	db.checkpointsOnce.Do(func() {
		opts := db.CheckpointOptions()
		db.checkpoints = checkpoint.New(db.blobs, db.rows, &opts)
	})
	return db.checkpoints
}

// CheckpointOptions returns what connects checkpoints with the rest of the store,
// for callers who want a service with further options of their own.
func (db *DB) CheckpointOptions() checkpoint.Options {
	opts := checkpoint.Options{Conversations: checkpoint.Of(db.conversations)}
	if db.engine != nil {
		opts.IndexDir = filepath.Join(db.engine.Dir(), IndexName)
	}
	return opts
}
