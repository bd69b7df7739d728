package stet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/recall"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/workspace"
)

// IndexName is the subdirectory of an embedded store for local files: stat indexes
// and locks of workspaces.
const IndexName = "workspaces"

// Checkpoints returns the checkpoints of the store.
func (db *DB) Checkpoints() *checkpoint.Service {
	db.checkpointsOnce.Do(func() {
		opts := db.CheckpointOptions()
		db.checkpoints = checkpoint.New(db.blobs, db.rows, &opts)
	})
	return db.checkpoints
}

// CheckpointOptions returns the options that connect checkpoints with the rest of the
// store, for callers that add options of their own.
func (db *DB) CheckpointOptions() checkpoint.Options {
	opts := checkpoint.Options{Conversations: checkpoint.Of(db.conversations)}
	if db.engine != nil {
		opts.StoreDir = db.engine.Dir()
		opts.IndexDir = filepath.Join(opts.StoreDir, IndexName)
	}
	if db.ring != nil {
		opts.IndexSeal = indexSeal{db.ring}
	}
	if db.tune != nil {
		db.tune(&opts)
	}
	return opts
}

// indexSeal derives the keys of stat indexes from the data keys of a store.
type indexSeal struct{ ring *keyring.Ring }

// Active implements workspace.Sealer.
func (s indexSeal) Active() ([8]byte, error) {
	key, err := s.ring.Active()
	return key.ID(), err
}

// Key implements workspace.Sealer.
func (s indexSeal) Key(id [8]byte, salt []byte) ([]byte, error) {
	key, err := s.ring.Key(id)
	if err != nil {
		return nil, err
	}
	return key.Derive(salt, "stet workspace index v1", 32)
}

// dropIndexes removes the stat indexes for which due returns true, and returns their number.
// They are rebuilt on demand. It also drops everything in the recall directory, whatever key
// seals it.
func (db *DB) dropIndexes(due func(workspace.IndexFile) bool) (n int, err error) {
	dir := filepath.Join(db.engine.Dir(), IndexName)
	if err := recall.New(filepath.Join(dir, recall.Name), nil).Drop(); err != nil {
		return 0, fmt.Errorf("remove what is recalled: %w", err)
	}
	files, err := workspace.IndexFiles(dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if !due(f) {
			continue
		}
		if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("remove index: %w", err)
		}
		n++
	}
	return n, nil
}
