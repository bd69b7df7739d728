package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

// Tenants opens the stores of tenants. What one of them returns must not hold, and
// not even tell of, what belongs to another. DirTenants keeps each in a directory
// of its own; a backend that many servers share may keep them apart by a prefix
// of its keys.
type Tenants interface {
	// Open returns the store of a tenant, and makes it at the first time. The
	// server closes it when it was idle for a while.
	Open(ctx context.Context, tenant string) (*stet.DB, error)
	// Usage returns how many bytes a store that Open returned takes.
	Usage(ctx context.Context, db *stet.DB) (int64, error)
}

// TenantsName is the directory of the tenants, in that of a store.
const TenantsName = "tenants"

// DirTenants keeps the store of each tenant in a directory of its own, below
// TenantsName.
type DirTenants struct {
	Dir string
	// Unlock returns the key of an encrypted store in a directory; nil if there are
	// none.
	Unlock func(dir string) (keyring.Unlock, error)
	// Options shape the stores.
	Options stet.Options
}

// Open implements Tenants.
func (d *DirTenants) Open(ctx context.Context, tenant string) (*stet.DB, error) {
	if err := access.CheckTenant(tenant); err != nil {
		return nil, err
	}
	dir := filepath.Join(d.Dir, TenantsName, tenant)
	opts := d.Options
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
	if err := db.Blobs().Flush(ctx); err != nil { // only what is durable is counted
		return 0, err
	}
	stats, err := engine.Stats(ctx, nil)
	return contentBytes(stats), err
}

// contentBytes is what the contents take. Pages that are free are not counted, though
// they are on the disk: else nobody could get below a limit again.
func contentBytes(s sqlite.Stats) int64 { return (s.Pages-s.FreePages)*s.PageSize + s.InFiles.Bytes }
