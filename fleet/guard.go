package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/kv/sealed"
)

// Seals reports, without a key, whether the data outside of tenants is encrypted.
func (f *Fleet) Seals(ctx context.Context) (sealed.Evidence, error) {
	t, err := f.db.Tenant(system)
	if err != nil {
		return sealed.Nothing, err
	}
	return sealed.Look(ctx, t.Rows())
}

// guard rejects a node without the keyring of an encrypted fleet, and the reverse,
// before it writes to an empty tenant, which shows nothing itself. The fleet is
// marked as encrypted when a node first opens a tenant with keys.
func (f *Fleet) guard(ctx context.Context) error {
	if f.marked.Load() {
		return nil
	}
	t, err := f.db.Tenant(system)
	if err != nil {
		return err
	}
	rows := sealed.New(t.Rows(), &sealed.Options{Ring: f.ring, Tenant: system})
	found, err := rows.Guard(ctx)
	if errors.Is(err, stet.ErrNoKeyring) {
		return fmt.Errorf("%w; set keyring (STET_KEYRING) to its file", err)
	}
	if err != nil || f.ring == nil {
		return err
	}
	if found != sealed.Marked {
		if err := rows.Mark(ctx); err != nil {
			return fmt.Errorf("mark the fleet as encrypted: %w", err)
		}
	}
	f.marked.Store(true)
	return nil
}

// Mark records in the database that the fleet is encrypted. It is called when the
// keyring is created; a node with the keyring does the same.
func (f *Fleet) Mark(ctx context.Context) error {
	if f.ring == nil {
		return stet.ErrLocked
	}
	return f.guard(ctx)
}
