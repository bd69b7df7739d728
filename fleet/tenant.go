package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/meter/otelmeter"
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/search"
)

const (
	// DefaultTenant is the name in the database of the tenant with the empty name.
	DefaultTenant = "default"
	// system holds the data that belongs to no tenant. No tenant can have that name.
	system = ":system"
)

var (
	// ErrMigrating says that a migration into the tenant is not complete.
	ErrMigrating = fault.Named(fault.Conflict, "migrating", "a migration into this store has not ended; run 'stet migrate' again to finish it")
	// errNotOurs says that a store was opened by another process.
	errNotOurs = fault.New(fault.Invalid, "the store does not belong to this fleet")
)

// tenant returns a tenant's part of the database and the name for which its data is
// sealed.
func (f *Fleet) tenant(name string) (t *postgres.Tenant, sealedFor string, err error) {
	if name == "" || name == DefaultTenant {
		// It is empty, as in an embedded store, so that one can be moved here unchanged.
		t, err = f.db.Tenant(DefaultTenant)
		return t, "", err
	}
	if err := access.CheckTenant(name); err != nil {
		return nil, "", err
	}
	t, err = f.db.Tenant(name)
	return t, name, err
}

// Open implements server.Tenants. The store of a tenant that was never opened is
// empty.
func (f *Fleet) Open(ctx context.Context, name string) (*stet.DB, error) {
	return f.openTenant(ctx, name, true, func() error { return nil })
}

// OpenOnly is Open for a single store: closing it closes the fleet. An update of its
// search index updates all of it, not only what a request can wait for.
func (f *Fleet) OpenOnly(ctx context.Context, name string) (*stet.DB, error) {
	return f.openTenant(ctx, name, false, f.Close)
}

func (f *Fleet) openTenant(ctx context.Context, name string, node bool, then func() error) (*stet.DB, error) {
	t, sealedFor, err := f.tenant(name)
	if err != nil {
		return nil, err
	}
	switch _, err := t.Rows().Get(ctx, migrationMark); {
	case err == nil:
		return nil, fmt.Errorf("open tenant %s: %w", t.Name(), ErrMigrating)
	case !errors.Is(err, kv.ErrNotFound):
		return nil, fmt.Errorf("open tenant %s: %w", t.Name(), err)
	}
	if err := f.guard(ctx); err != nil {
		return nil, fmt.Errorf("open tenant %s: %w", t.Name(), err)
	}
	opts := f.config.Options
	opts.Tenant = sealedFor
	if opts.MeterProvider == nil {
		opts.MeterProvider = otelmeter.Global()
	}
	backend := stet.Backend{Blobs: t.Blobs(), Rows: t.Rows(), Inventory: t.Blobs(), Rewriter: t.Blobs(), Inline: t.Blobs().Inline, Stats: statsOf(t)}
	if f.bucket != nil {
		prefix := objectPrefix(t.Name())
		backend.Objects = &prefixed{inner: f.bucket, prefix: prefix}
		opts.Presigner = &presigner{bucket: f.bucket, prefix: prefix}
	}
	if opts.Search == nil {
		opts.Search = func(ctx context.Context, c *conversation.Store, blobs blob.Store, rows kv.Store) (search.Searcher, error) {
			index, err := f.index(ctx, t, c, blobs, rows)
			if err != nil {
				return nil, err
			}
			index.InRequest = node
			return index, nil
		}
	}
	var db *stet.DB
	backend.Close = func() error {
		f.mu.Lock()
		delete(f.open, db)
		f.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		return errors.Join(t.Blobs().Flush(ctx), then())
	}
	if db, err = stet.New(ctx, backend, f.ring, &opts); err != nil {
		return nil, fmt.Errorf("open tenant %s: %w", t.Name(), err)
	}
	f.mu.Lock()
	f.open[db] = t
	f.mu.Unlock()
	return db, nil
}

// flushTime is how long closing a store may wait for the database.
const flushTime = 30 * time.Second

// Usage implements server.Tenants.
func (f *Fleet) Usage(ctx context.Context, db *stet.DB) (int64, error) {
	f.mu.Lock()
	t := f.open[db]
	f.mu.Unlock()
	if t == nil {
		return 0, errNotOurs
	}
	if err := t.Blobs().Flush(ctx); err != nil { // only durable data is counted
		return 0, err
	}
	return t.Usage(ctx)
}

// hashOf is the form of a tenant's name in bucket keys, which allow fewer characters
// and are visible to more people.
func hashOf(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:16])
}

// objectPrefix is the key prefix of a tenant's objects, except large blobs, whose
// keys the driver chooses.
func objectPrefix(tenant string) string { return "tenants/" + hashOf(tenant) + "/" }
