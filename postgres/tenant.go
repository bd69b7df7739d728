package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
)

// maxTenant is the longest name of a tenant; with the longest key it fits into an
// index entry.
const maxTenant = 255

// Tenant is the part of a DB that belongs to one tenant. Other tenants cannot read it
// or learn what it holds.
type Tenant struct {
	db   *DB
	name string

	mu       sync.Mutex // guards the fields below
	gen      int64      // the current generation known to this node, or 0
	pending  map[blob.ID]*record
	queue    []*record // of pending, without those in a running transaction
	bytes    int       // weight of pending
	requests []*request
	active   int           // goroutines that write
	carrying bool          // a transaction with blobs is running
	last     int           // requests of the last transaction
	drained  chan struct{} // closed when pending shrinks or writes are stuck
	stuck    error         // why the last transaction failed; nil after a success
	lost     []error       // blobs that could not be stored; the next Flush reports them
	lingers  bool          // a flush of unflushed blobs is scheduled
	known    map[blob.ID]struct{}

	readMu    sync.Mutex // guards the fields below
	questions []*question
	flying    int // goroutines that answer them
}

// maxKnown limits how many blobs a tenant remembers.
const maxKnown = 8192

// remember records a blob that was recently seen in the database, so that a blob that
// leans on it can be put without a query. It may have been removed since; the commit
// checks that.
func (t *Tenant) remember(id blob.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rememberLocked(id)
}

func (t *Tenant) rememberLocked(id blob.ID) {
	if t.known == nil || len(t.known) >= maxKnown {
		t.known = make(map[blob.ID]struct{})
	}
	t.known[id] = struct{}{}
}

// forget drops the ids that were not found.
func (t *Tenant) forget(ids []blob.ID, found map[blob.ID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if !found[id] {
			delete(t.known, id)
		}
	}
}

func (t *Tenant) knows(id blob.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.known[id]
	return ok
}

// Tenant returns one tenant's part of the DB. Names are at most 255 bytes of UTF-8.
func (db *DB) Tenant(name string) (*Tenant, error) {
	if name == "" || len(name) > maxTenant || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("%w: %.40q", ErrTenant, name)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tenants[name]
	if t == nil {
		// One value for all callers, so that they see each other's pending blobs.
		t = &Tenant{db: db, name: name, pending: make(map[blob.ID]*record), drained: make(chan struct{})}
		db.tenants[name] = t
	}
	return t, nil
}

// Name returns the tenant's name.
func (t *Tenant) Name() string { return t.name }

// Usage returns the bytes of the tenant's rows and blobs, those in the bucket
// included.
func (t *Tenant) Usage(ctx context.Context) (int64, error) {
	var used int64
	err := t.db.pool.QueryRow(ctx, t.db.sql(`SELECT (SELECT coalesce(sum(size), 0)::bigint FROM @blobs WHERE tenant = $1) +
		(SELECT coalesce(sum(length(key) + length(value)), 0)::bigint FROM @rows WHERE tenant = $1)`), t.name).Scan(&used)
	return used, t.db.wrap(ctx, "compute the usage of a tenant", err)
}

// prepare returns the current generation known to this node. If it knows none, it
// queries the database and creates the tenant's own rows if missing.
func (t *Tenant) prepare(ctx context.Context) (int64, error) {
	t.mu.Lock()
	gen := t.gen
	t.mu.Unlock()
	if gen != 0 {
		return gen, nil
	}
	b, db := &pgx.Batch{}, t.db
	b.Queue(db.sql(`INSERT INTO @tenants (tenant, shard) VALUES ($1, $2) ON CONFLICT DO NOTHING`), t.name, shardOf(t.name))
	b.Queue(db.sql(`INSERT INTO @generations (tenant, generation) SELECT $1::text, 1
		WHERE NOT EXISTS (SELECT 1 FROM @generations WHERE tenant = $1::text) ON CONFLICT DO NOTHING`), t.name)
	b.Queue(db.sql(`SELECT max(generation) FROM @generations WHERE tenant = $1`), t.name).QueryRow(func(row pgx.Row) error {
		return row.Scan(&gen)
	})
	if err := db.pool.SendBatch(ctx, b).Close(); err != nil {
		return 0, err
	}
	t.newGeneration(gen)
	return gen, nil
}

// newGeneration records the current generation; 0 means unknown.
func (t *Tenant) newGeneration(gen int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen = gen
}
