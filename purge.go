package stet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/purge"
	"github.com/stet-dev/stet/search"
)

// HooksSuffix ends the name of the directory beside a store in which the hooks of agents
// keep events until the store has their turn.
const HooksSuffix = ".hooks"

// Purger returns the service that removes content from the whole store. It fails with
// ErrNoInventory if blobs cannot be listed, as over the wire: purge on the machine that
// has the store.
func (db *DB) Purger() (*purge.Service, error) {
	if db.inventory == nil {
		return nil, ErrNoInventory
	}
	stores := purge.Stores{
		Blobs: db.blobs, Rows: db.rows, Lister: db.inventory, Repairer: db.repairer, Upkeep: db.upkeep,
		Conversations: db.conversations, Checkpoints: db.Checkpoints(), Mirror: db.mirror,
	}
	if db.engine != nil {
		stores.Dir, stores.Beside = db.engine.Dir(), db.engine.Dir()+HooksSuffix
		stores.Scrub, stores.Reindex = db.engine.Scrub, db.reindex
	}
	return purge.New(stores), nil
}

// reindex removes content that the store no longer has from the search index file.
func (db *DB) reindex(ctx context.Context) error {
	path := filepath.Join(db.engine.Dir(), SearchName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || db.ring != nil {
		return nil
	}
	if err := db.closeSearch(); err != nil {
		return err
	}
	index, err := search.Open(ctx, db.conversations, db.blobs, db.rows, &search.Options{Path: path})
	if err != nil {
		return err
	}
	_, err = index.Update(ctx)
	if err == nil {
		err = index.Truncate(ctx)
	}
	return errors.Join(err, index.Close())
}
