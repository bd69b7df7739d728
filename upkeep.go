package stet

import (
	"context"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/upkeep"
)

// ErrNoInventory says that the backend cannot enumerate what it holds.
var ErrNoInventory = upkeep.ErrNoInventory

// List calls fn for every stored blob, in the order of their ids, wherever the store
// is. It fails with ErrNoInventory where blobs cannot be listed.
func (db *DB) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if db.lister == nil {
		return ErrNoInventory
	}
	return db.lister.List(ctx, after, fn)
}

// Holders returns what refers to the store's blobs, by service.
func (db *DB) Holders() upkeep.Holders { return db.upkeep.Holders() }

// Collect removes the blobs that nothing refers to, while writers go on.
func (db *DB) Collect(ctx context.Context, opts *upkeep.CollectOptions) (upkeep.CollectResult, error) {
	if db.collect != nil {
		return db.collect(ctx, opts)
	}
	return db.upkeep.Collect(ctx, opts)
}

// Check checks every row and every referenced blob, and reports what is wrong and
// which conversations it affects.
func (db *DB) Check(ctx context.Context, opts *upkeep.CheckOptions) (*upkeep.Report, error) {
	return db.upkeep.Check(ctx, opts)
}

// Quarantine sets damaged rows aside and returns their keys.
func (db *DB) Quarantine(ctx context.Context) ([]string, error) { return db.upkeep.Quarantine(ctx) }

// Quarantined lists the rows that were set aside, by their original keys.
func (db *DB) Quarantined(ctx context.Context) ([]string, error) { return db.upkeep.Quarantined(ctx) }

// RestoreQuarantine puts back the rows that were set aside, and returns their keys.
func (db *DB) RestoreQuarantine(ctx context.Context) ([]string, error) {
	return db.upkeep.RestoreQuarantine(ctx)
}

// Compact compresses recently stored content now, and returns the space to the file
// system. An open store does that by itself when it is idle. progress, if set, is
// called with the number of examined blobs.
func (db *DB) Compact(ctx context.Context, progress func(done int)) error {
	return db.compactor.Compact(ctx, progress)
}

// Uncompacted returns how many bytes this process has stored that are not compressed yet.
func (db *DB) Uncompacted() int64 { return db.compactor.Waiting() }

// Backlog estimates how many bytes Compact has not examined, from all processes. It
// stops counting at enough.
func (db *DB) Backlog(ctx context.Context, enough int64) (int64, error) {
	return db.compactor.Backlog(ctx, enough)
}

// Archive moves a conversation, with its checkpoints and its agent, or an agent
// without a conversation, into the bucket. It reads as before; a change brings it back.
func (db *DB) Archive(ctx context.Context, id string) (pack.Info, error) {
	return db.upkeep.Archive(ctx, id)
}

// CheckArchive reads what Archive would move, and moves nothing.
func (db *DB) CheckArchive(ctx context.Context, id string) error {
	return db.upkeep.CheckArchive(ctx, id)
}

// ArchiveIdle archives all conversations that have not changed for some time.
func (db *DB) ArchiveIdle(ctx context.Context, opts *upkeep.ArchiveOptions) (upkeep.ArchiveResult, error) {
	return db.upkeep.ArchiveIdle(ctx, opts)
}

// Archived yields the archived conversations, in the order of their keys.
func (db *DB) Archived(ctx context.Context) iter.Seq2[pack.Info, error] {
	return db.upkeep.Archived(ctx)
}

// Unarchive brings a conversation back into the store.
func (db *DB) Unarchive(ctx context.Context, id string) error { return db.upkeep.Unarchive(ctx, id) }

// UnarchiveAll brings all conversations back, for callers that copy or rewrite whole
// stores.
func (db *DB) UnarchiveAll(ctx context.Context) error { return db.upkeep.UnarchiveAll(ctx) }

// SweepPacks removes objects of the bucket that no archived conversation names and
// that are older than grace, a day if that is 0.
func (db *DB) SweepPacks(ctx context.Context, grace time.Duration) (pack.SweepResult, error) {
	return db.upkeep.SweepPacks(ctx, grace)
}
