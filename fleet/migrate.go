package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/sqlite"
)

// Errors of Migrate that callers branch on.
var (
	// ErrNotEmpty says that a migration would mix its data with other data.
	ErrNotEmpty = fault.New(fault.Conflict, "the target holds other data")
	// ErrDiffers says that source and target differ in the end, for example because the
	// source was written to meanwhile. Migrate again to copy the rest.
	ErrDiffers = fault.New(fault.Conflict, "source and target differ")
	// ErrArchivedSource says that parts of the source are in a bucket of its own.
	ErrArchivedSource = fault.New(fault.Conflict, "the source has archived conversations; bring them back with 'stet unarchive' first")
	// ErrOtherTenant says that a store was sealed for a tenant other than the target.
	ErrOtherTenant = fault.New(fault.Invalid, "an encrypted store can only become the default tenant: its encryption is bound to that name")
)

// migrationMark is the row of the target that names the running migration. A
// migration writes it first and removes it last.
var migrationMark = keyspace.Setting("migration")

// mark is the value of migrationMark.
type mark struct {
	Version int       `json:"version"`
	Source  string    `json:"source"` // the id of the source store
	Started time.Time `json:"started"`
}

const markVersion = 1

// MigrateOptions configure a migration; nil gives the defaults.
type MigrateOptions struct {
	// Encrypted means that the source has a keyring.
	Encrypted bool
	// Progress, if set, is called with the current step and its progress; all is 0
	// while unknown.
	Progress func(doing string, done, all int64)
}

// MigrateResult counts the content of the source and what was copied.
type MigrateResult struct {
	Blobs, Bytes, Rows              int64
	CopiedBlobs, CopiedBytes, Wrote int64 // Wrote counts rows
	// Resumed means that an earlier migration was continued.
	Resumed bool
}

// Migrate copies an embedded store into a tenant, as stored: compressed and encrypted
// data stays so, and the keyring is needed only to open the tenant. It copies what is
// missing, compares everything, and then allows the tenant to be opened. It only
// reads the source. After an interruption, call it again.
func (f *Fleet) Migrate(ctx context.Context, source *sqlite.DB, tenant string, opts *MigrateOptions) (MigrateResult, error) {
	if opts == nil {
		opts = &MigrateOptions{}
	}
	t, sealedFor, err := f.tenant(tenant)
	if err != nil {
		return MigrateResult{}, err
	}
	if opts.Encrypted && sealedFor != "" {
		return MigrateResult{}, fmt.Errorf("migrate to tenant %s: %w", tenant, ErrOtherTenant)
	}
	m := &migration{
		source: source.ID(), from: side{source.Blobs(), source.Rows()}, to: side{t.Blobs(), t.Rows()},
		progress: opts.Progress,
	}
	err = m.run(ctx)
	return m.result, err
}

// driver is the store of blobs of a driver.
type driver interface {
	blob.Store
	blob.Streamer
	blob.Lister
}

type side struct {
	blobs driver
	rows  kv.Store
}

// migration is one run.
type migration struct {
	source   string
	from, to side
	progress func(doing string, done, all int64)
	result   MigrateResult

	marked uint64 // the version of the mark
}

func (m *migration) tell(doing string, done, all int64) {
	if m.progress != nil {
		m.progress(doing, done, all)
	}
}

func (m *migration) run(ctx context.Context) error {
	for _, step := range []struct {
		doing string
		do    func(context.Context) error
	}{
		{"begin", m.begin}, {"copy blobs", m.copyBlobs}, {"copy rows", m.copyRows},
		{"compare blobs", m.compareBlobs}, {"compare rows", m.compareRows}, {"end", m.end},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("migrate: %s: %w", step.doing, err)
		}
	}
	return nil
}

// begin makes sure that the target is empty or belongs to this migration.
func (m *migration) begin(ctx context.Context) error {
	for _, err := range m.from.rows.Scan(ctx, keyspace.Packs(), kv.ScanOptions{Limit: 1, KeysOnly: true}) {
		if err == nil {
			err = ErrArchivedSource
		}
		return err
	}
	row, err := m.to.rows.Get(ctx, migrationMark)
	if err == nil {
		return m.resume(row)
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if err := m.checkEmpty(ctx); err != nil {
		return err
	}
	value, err := json.Marshal(mark{Version: markVersion, Source: m.source, Started: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	err = m.to.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: migrationMark}}, Set: []kv.Set{{Key: migrationMark, Value: value}},
	})
	if err != nil {
		return err
	}
	row, err = m.to.rows.Get(ctx, migrationMark)
	m.marked = row.Version
	return err
}

func (m *migration) resume(row kv.Row) error {
	var found mark
	if err := json.Unmarshal(row.Value, &found); err != nil || found.Version != markVersion {
		return fmt.Errorf("%w: its migration mark is invalid", ErrNotEmpty)
	}
	if found.Source != m.source {
		return fmt.Errorf("%w: a migration of store %s, started on %s, is unfinished", ErrNotEmpty, found.Source, found.Started.Format(time.DateOnly))
	}
	m.marked, m.result.Resumed = row.Version, true
	return nil
}

func (m *migration) checkEmpty(ctx context.Context) error {
	for _, err := range m.to.rows.Scan(ctx, kv.Range{}, kv.ScanOptions{Limit: 1, KeysOnly: true}) {
		if err == nil {
			err = fmt.Errorf("%w: it has rows", ErrNotEmpty)
		}
		return err
	}
	return m.to.blobs.List(ctx, blob.ID{}, func(blob.Info) error {
		return fmt.Errorf("%w: it has blobs", ErrNotEmpty)
	})
}

// end allows the target to be used.
func (m *migration) end(ctx context.Context) error {
	return m.to.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: migrationMark, Version: m.marked}}, Delete: []string{migrationMark},
	})
}
