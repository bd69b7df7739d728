package stet

import (
	"context"
	"iter"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/thread"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/usage"
)

// Usage returns the service that measures the store.
func (db *DB) Usage() *usage.Store {
	s := &usage.Store{
		Blobs: db.blobs, Lister: db.lister, Names: db.conversations, Archived: db.inPacks,
		Conversations: conversation.New(db.blobs, db.live, nil),
		Checkpoints:   checkpoint.New(db.blobs, db.live, nil),
		Agents:        cloudagent.New(db.blobs, db.live, nil),
		Others:        []conversation.Roots{stream.New(db.blobs, db.live, nil).Roots, thread.New(db.blobs, db.live, nil).Roots, document.Open(db.blobs, db.live, nil).Roots},
	}
	if engine := db.engine; engine != nil {
		s.Dir = engine.Dir()
		s.Rows = func(ctx context.Context) (n int64, err error) {
			stats, err := engine.Stats(ctx, nil)
			for _, rows := range stats.Rows {
				n += rows.N
			}
			return n, err
		}
	}
	return s
}

// Stats counts what the backend holds, rows by family. Without an embedded engine, pages
// and files of a database are not counted, and objects of a bucket count as files. It fails
// with upkeep.ErrNoInventory over the wire.
func (db *DB) Stats(ctx context.Context) (sqlite.Stats, error) {
	if db.stats == nil {
		return sqlite.Stats{}, upkeep.ErrNoInventory
	}
	return db.stats(ctx, keyspace.Family)
}

// inPacks yields the archived conversations, for usage.
func (db *DB) inPacks(ctx context.Context) iter.Seq2[usage.Archived, error] {
	return func(yield func(usage.Archived, error) bool) {
		for info, err := range db.Archived(ctx) {
			a := usage.Archived{ID: info.ID, Objects: int64(info.Objects), Count: usage.Count{Blobs: int64(info.Blobs), Bytes: info.Bytes}}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}
