package stet

import (
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/thread"
)

// Agents returns the cloud agents of the store.
func (db *DB) Agents() *cloudagent.Store {
	db.agentsOnce.Do(func() {
		db.agents = cloudagent.New(db.blobs, db.rows, &cloudagent.Options{Presigner: db.presigner, LegacySnapshots: db.legacy})
	})
	return db.agents
}

// Documents returns the documents that programs keep in the store under names of their
// choice.
func (db *DB) Documents() *document.Store { return document.Open(db.blobs, db.rows, nil) }

// Threads returns the graph states that agent frameworks keep in the store.
func (db *DB) Threads() *thread.Store { return thread.New(db.blobs, db.rows, nil) }
