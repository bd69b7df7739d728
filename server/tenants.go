package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/meter/otelmeter"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

// Tenants opens the stores of tenants. A store of one tenant must not hold or reveal
// data of another. DirTenants keeps each in its own directory; a backend that many
// servers share may separate them by a key prefix.
type Tenants interface {
	// Open returns the store of a tenant, and creates it the first time. The server
	// closes it when it is idle.
	Open(ctx context.Context, tenant string) (*stet.DB, error)
	// Usage returns how many bytes a store that Open returned takes.
	Usage(ctx context.Context, db *stet.DB) (int64, error)
}

// TenantsName is the directory of the tenants, in the directory of a store.
const TenantsName = "tenants"

// DirTenants keeps the store of each tenant in its own directory, below TenantsName.
type DirTenants struct {
	Dir string
	// Unlock returns the key of an encrypted store in a directory; nil if there are
	// none.
	Unlock func(dir string) (keyring.Unlock, error)
	// Options configure the stores. Without a provider of meters they report to
	// OpenTelemetry's global one, as the server does.
	Options stet.Options
}

// Open implements Tenants.
func (d *DirTenants) Open(ctx context.Context, tenant string) (*stet.DB, error) {
	if err := access.CheckTenant(tenant); err != nil {
		return nil, err
	}
	dir := filepath.Join(d.Dir, TenantsName, tenant)
	opts := d.Options
	if opts.MeterProvider == nil {
		opts.MeterProvider = otelmeter.Global()
	}
	db, err := stet.Open(ctx, dir, &opts)
	if d.Unlock == nil || !errors.Is(err, stet.ErrLocked) {
		return db, err
	}
	unlock, err := d.Unlock(dir)
	if err != nil {
		return nil, err
	}
	opts.Unlock = &unlock
	return stet.Open(ctx, dir, &opts)
}

// Usage implements Tenants.
func (d *DirTenants) Usage(ctx context.Context, db *stet.DB) (int64, error) {
	engine := db.Engine()
	if engine == nil {
		return 0, fmt.Errorf("measure store: %w", upkeep.ErrNoInventory)
	}
	if err := db.Blobs().Flush(ctx); err != nil { // only durable data is counted
		return 0, err
	}
	stats, err := engine.Stats(ctx, nil)
	return contentBytes(stats), err
}

// contentBytes is the size of the contents. Free pages on disk do not count; otherwise a
// tenant could not get below its limit again.
func contentBytes(s sqlite.Stats) int64 { return (s.Pages-s.FreePages)*s.PageSize + s.InFiles.Bytes }
