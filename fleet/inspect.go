package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/postgres"
)

// Report is the result of Inspect.
type Report struct {
	// Server is the version of the database server, Format that of our tables.
	Server, Format string
	// Epoch counts the restores from a backup.
	Epoch uint64
	// Tenants is the number of tenants.
	Tenants int
	// Skew is how far the clock of the database is ahead of this node's, give or
	// take half of RoundTrip.
	Skew, RoundTrip time.Duration
}

// table returns the name of a table of ours.
func (f *Fleet) table(name string) string {
	schema := f.config.Postgres.Schema
	if schema == "" {
		schema = "stet"
	}
	return `"` + schema + `".` + name
}

// Inspect queries the state of the database.
func (f *Fleet) Inspect(ctx context.Context) (Report, error) {
	var r Report
	pool, micros, began := f.db.Pool(), int64(0), time.Now()
	err := pool.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros)
	r.RoundTrip = time.Since(began)
	r.Skew = time.UnixMicro(micros).Sub(began.Add(r.RoundTrip / 2))
	if err == nil {
		err = pool.QueryRow(ctx, `SELECT current_setting('server_version'), (SELECT value FROM `+f.table("meta")+` WHERE key = 'version'),
			(SELECT count(*) FROM `+f.table("tenants")+` WHERE tenant NOT LIKE ':%')`).Scan(&r.Server, &r.Format, &r.Tenants)
	}
	if err != nil {
		return r, away(ctx, "inspect database", err)
	}
	r.Epoch, err = f.db.Epoch(ctx)
	return r, err
}

// away keeps only the text of a client library's error: the error itself carries the
// connection settings.
func away(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s: %w: %s", doing, postgres.ErrUnavailable, err.Error())
}

// Tenants returns the names of the tenants with data.
func (f *Fleet) Tenants(ctx context.Context) ([]string, error) {
	var names []string
	// Skip internal names; no tenant name begins like them.
	err := f.db.Pool().QueryRow(ctx, `SELECT coalesce(array_agg(tenant ORDER BY tenant), '{}') FROM `+f.table("tenants")+
		` WHERE tenant NOT LIKE ':%'`).Scan(&names)
	if err != nil {
		return nil, away(ctx, "list tenants", err)
	}
	return names, nil
}

// Scratch is a tenant for tests.
type Scratch struct {
	*postgres.Tenant
	fleet *Fleet
}

// scratchName is the prefix of scratch tenants; the time in seconds follows.
const scratchName = ":scratch-"

// Scratch creates a tenant for tests that is invisible to others. The caller removes
// it.
func (f *Fleet) Scratch(ctx context.Context) (*Scratch, error) {
	if err := f.removeOldScratch(ctx); err != nil {
		return nil, err
	}
	t, err := f.db.Tenant(fmt.Sprintf("%s%d-%s", scratchName, time.Now().Unix(), rand.Text()))
	if err != nil {
		return nil, err
	}
	return &Scratch{Tenant: t, fleet: f}, nil
}

// removeOldScratch removes scratch tenants of killed processes.
func (f *Fleet) removeOldScratch(ctx context.Context) error {
	var names []string
	err := f.db.Pool().QueryRow(ctx, `SELECT coalesce(array_agg(tenant), '{}') FROM `+f.table("tenants")+
		` WHERE tenant LIKE '`+scratchName+`%'`).Scan(&names)
	if err != nil {
		return away(ctx, "look for old scratch tenants", err)
	}
	for _, name := range names {
		made, _, _ := strings.Cut(strings.TrimPrefix(name, scratchName), "-")
		seconds, err := strconv.ParseInt(made, 10, 64)
		if err == nil && time.Since(time.Unix(seconds, 0)) > 24*time.Hour {
			if err := f.removeTenant(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove removes all data of a scratch tenant.
func (s *Scratch) Remove(ctx context.Context) error {
	if err := s.Blobs().Flush(ctx); err != nil { // or it would be written later
		return err
	}
	return s.fleet.removeTenant(ctx, s.Name())
}

func (f *Fleet) removeTenant(ctx context.Context, name string) error {
	for _, table := range []string{"rows", "blobs", "generations", "tenants"} {
		if _, err := f.db.Pool().Exec(ctx, `DELETE FROM `+f.table(table)+` WHERE tenant = $1`, name); err != nil {
			return away(ctx, "remove tenant", err)
		}
	}
	if f.bucket == nil {
		return nil
	}
	for _, prefix := range []string{hashOf(name) + "/", objectPrefix(name)} {
		var keys []string
		err := f.bucket.ListObjects(ctx, prefix, "", func(o blob.ObjectInfo) error {
			keys = append(keys, o.Key)
			return nil
		})
		if err == nil && len(keys) > 0 {
			err = f.bucket.RemoveObjects(ctx, keys...)
		}
		if err != nil {
			return fmt.Errorf("remove the objects of a tenant: %w", err)
		}
	}
	return nil
}

// SweepResult counts what Sweep removed.
type SweepResult struct {
	// Objects are objects without a row, Uploads unfinished uploads.
	Objects, Uploads int
}

// Sweep removes what killed nodes left in the bucket and is older than grace: objects
// of the tenant that no row names, and unfinished uploads of all tenants. Grace must
// be longer than any write, and longer than the lag of database backups behind bucket
// backups. Packs have their own sweep: stet.DB.SweepPacks.
func (f *Fleet) Sweep(ctx context.Context, tenant string, grace time.Duration) (r SweepResult, err error) {
	if f.bucket == nil {
		return r, nil
	}
	t, _, err := f.tenant(tenant)
	if err != nil {
		return r, err
	}
	if r.Objects, err = t.Blobs().SweepOrphans(ctx, grace); err != nil {
		return r, err
	}
	r.Uploads, err = f.bucket.AbortStale(ctx, grace)
	return r, err
}
