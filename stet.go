package stet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/meter"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/upkeep"
)

// KeyringName is the name of the keyring in the directory of an encrypted store.
const KeyringName = "keys.json"

// ErrLocked says that a store is encrypted and no key was given.
var ErrLocked = fault.Named(fault.WrongKey, "locked", "the store is encrypted and no key was given")

// Options configure a DB; nil means all defaults.
type Options struct {
	// Unlock opens the keyring of an encrypted store.
	Unlock *keyring.Unlock
	// Tenant separates users who share a backend; empty locally.
	Tenant string
	// CacheBytes limits the content held in memory; 64 MiB by default.
	CacheBytes int64
	// MeterProvider receives metrics, for example otelmeter.Global(); nil measures
	// nothing.
	MeterProvider meter.Provider
	// SQLite configures the embedded store.
	SQLite *sqlite.Options
	// Presigner creates addresses of the snapshots of cloud agents; without it there
	// are none.
	Presigner cloudagent.Presigner
	// LegacySnapshots gives snapshots of cloud agents without a format the legacy one
	// instead of v1 (cloud_agent_enable_blob_storage_format_v1 = false).
	LegacySnapshots bool
	// Checkpoints, if set, changes the checkpoint options of the store for everything
	// that uses them, including a server.
	Checkpoints func(*checkpoint.Options)
	// CompactManually leaves recently stored content uncompressed until DB.Compact is
	// called. By default an open store compresses it when it is idle.
	CompactManually bool
	// Collect, if set, replaces the collector, for example by a call to the server
	// for NewRemote.
	Collect func(context.Context, *upkeep.CollectOptions) (upkeep.CollectResult, error)
	// Lister lists the blobs of NewRemote; nil if not supported.
	Lister blob.Lister
	// Remote, if set, gets a copy of every blob and supplies blobs that the store has
	// lost. It needs a backend with Arrivals. See DB.Mirror.
	Remote *Remote
	// Search opens an external index, for example in a database that nodes share. An
	// encrypted store does not use it, because it holds plain text.
	Search func(context.Context, *conversation.Store, blob.Store, kv.Store) (search.Searcher, error)
}

// DB is an open store with its services. It is safe for concurrent use.
type DB struct {
	stack
	ring          *keyring.Ring
	unmarked      bool       // encrypted, but not marked when it was opened
	engine        *sqlite.DB // nil unless embedded
	conversations *conversation.Store
	presigner     cloudagent.Presigner // nil if there is none
	legacy        bool                 // Options.LegacySnapshots
	tune          func(*checkpoint.Options)
	close         func() error
	closeRemote   func() error                                                                // nil if there is nothing to close
	collect       func(context.Context, *upkeep.CollectOptions) (upkeep.CollectResult, error) // nil: db does

	checkpointsOnce sync.Once
	checkpoints     *checkpoint.Service // set by checkpointsOnce
	agentsOnce      sync.Once
	agents          *cloudagent.Store // set by agentsOnce
	streamsOnce     sync.Once
	streams         *stream.Store   // set by streamsOnce
	searchMu        sync.Mutex      // guards search
	search          search.Searcher // nil until first used
	stats           func(context.Context, func(string) string) (sqlite.Stats, error)
	openSearch      func(context.Context, *conversation.Store, blob.Store, kv.Store) (search.Searcher, error)
}

// Open opens the embedded store in dir, creating it if needed. Without write access
// it is opened for reading, and writes fail with blob.ErrReadOnly. A store with a
// keyring is encrypted; Options.Unlock must then open it. Open rejects an encrypted
// store without its keyring, and a key for a store without one. Conversations are
// archived into files below "packs" in the same directory.
func Open(ctx context.Context, dir string, opts *Options) (*DB, error) {
	if opts == nil {
		opts = &Options{}
	}
	ring, err := openRing(dir, opts.Unlock)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	engine, err := sqlite.Open(ctx, dir, withScratch(opts.SQLite))
	if err != nil {
		return nil, err
	}
	if ring != nil {
		// Keys may have changed while we waited for the store.
		if err := ring.Refresh(); err != nil {
			return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), engine.Close())
		}
	}
	blobs := engine.Blobs()
	bucket := pack.NewDir(dir)
	back := Backend{
		Blobs: blobs, Rows: engine.Rows(), Inventory: blobs, Rewriter: blobs, Arrivals: blobs,
		Objects: bucket, Unfinished: bucket.RemoveUnfinished, Shrink: engine.Shrink, Stats: engine.Stats, Close: engine.Close,
	}
	db, err := New(ctx, back, ring, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, explain(err)), engine.Close())
	}
	db.engine = engine
	if db.unmarked && !engine.ReadOnly() {
		if err := db.mark(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), db.Close())
		}
	}
	return db, nil
}

// withScratch makes it possible to compare a workspace with a read-only store.
func withScratch(opts *sqlite.Options) *sqlite.Options {
	var out sqlite.Options
	if opts != nil {
		out = *opts
	}
	if out.Scratch == 0 {
		out.Scratch = 256 << 20
	}
	return &out
}

// openRing returns nil for a store without a keyring.
func openRing(dir string, unlock *keyring.Unlock) (*keyring.Ring, error) {
	path := filepath.Join(dir, KeyringName)
	switch _, err := os.Lstat(path); {
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%w: it is not a directory", sqlite.ErrForeign)
	case errors.Is(err, fs.ErrNotExist):
		if unlock != nil {
			return nil, fmt.Errorf("%w: a key was given, but there is no %s; if the store is encrypted, put that file back; if not, omit the key", ErrNoKeyring, KeyringName)
		}
		return nil, nil
	case err != nil:
		return nil, err
	case unlock == nil:
		return nil, ErrLocked
	}
	return keyring.Open(path, *unlock)
}

// New returns a DB over any pair of drivers. With a ring, everything is sealed before
// it reaches the drivers. It rejects encrypted data without a ring (ErrNoKeyring) and
// plain data with one (ErrNotEncrypted). The first commit to an encrypted store marks
// it as encrypted.
func New(ctx context.Context, b Backend, ring *keyring.Ring, opts *Options) (*DB, error) {
	if b.Blobs == nil || b.Rows == nil {
		return nil, errors.New("a backend needs both blobs and rows")
	}
	if opts == nil {
		opts = &Options{}
	}
	if opts.Remote != nil && b.Arrivals == nil {
		return nil, fmt.Errorf("copy to a remote: the backend does not report arrivals: %w", errors.ErrUnsupported)
	}
	found, err := guard(ctx, b, ring, opts.Tenant)
	if err != nil {
		return nil, err
	}
	unmarked := ring != nil && found != sealed.Marked
	db := &DB{stack: buildStack(b, ring, opts, unmarked), ring: ring, unmarked: unmarked, presigner: opts.Presigner, close: b.Close, openSearch: opts.Search, stats: b.Stats}
	if opts.Remote != nil {
		db.closeRemote = opts.Remote.Close
	}
	db.legacy, db.tune = opts.LegacySnapshots, opts.Checkpoints
	db.conversations = conversation.New(db.blobs, db.rows, nil)
	return db, nil
}

// NewRemote returns a DB over the stores of a server, which verifies, compresses and
// seals itself: here only ids are checked and content is cached.
func NewRemote(blobs blob.Store, rows kv.Store, close func() error, opts *Options) *DB {
	if opts == nil {
		opts = &Options{}
	}
	db := &DB{close: close, collect: opts.Collect, openSearch: opts.Search, legacy: opts.LegacySnapshots, tune: opts.Checkpoints, presigner: opts.Presigner}
	db.cache = cached.New(blob.Checked(blobs), &cached.Options{MaxBytes: opts.CacheBytes, MeterProvider: opts.MeterProvider})
	db.blobs, db.rows, db.live = db.cache, rows, rows
	db.lister = opts.Lister
	db.conversations = conversation.New(db.blobs, db.rows, nil)
	db.upkeep = upkeep.New(upkeep.Stores{Blobs: db.blobs, Rows: db.rows})
	return db
}

// Conversations returns the conversations of the store.
func (db *DB) Conversations() *conversation.Store { return db.conversations }

// Blobs returns the store of blobs, with every layer.
func (db *DB) Blobs() blob.Store { return db.blobs }

// Rows returns the store of rows, sealed.
func (db *DB) Rows() kv.Store { return db.rows }

// Inventory lists and sweeps the stored blobs, by the callers' ids; nil if the
// backend has none.
func (db *DB) Inventory() upkeep.Inventory { return db.inventory }

// Engine returns the embedded engine, or nil for another backend.
func (db *DB) Engine() *sqlite.DB { return db.engine }

// Ring returns the keyring of an encrypted store, or nil.
func (db *DB) Ring() *keyring.Ring { return db.ring }

// Close makes all pending data durable and releases the store.
func (db *DB) Close() error {
	db.compactor.Close()
	err := db.closeSearch()
	if db.mirror != nil {
		err = errors.Join(err, db.mirror.Close())
		if db.closeRemote != nil {
			err = errors.Join(err, db.closeRemote())
		}
	}
	if db.close == nil {
		return errors.Join(err, db.blobs.Flush(context.Background()))
	}
	return errors.Join(err, db.close())
}
