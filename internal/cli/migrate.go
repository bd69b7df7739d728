package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/sqlite"
)

func (a *app) migrateCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Copy a local store into a database and a bucket",
		GroupID: groupMove,
		Long: `Copy the local store --from (by default the store of --store) into the database --to
and the bucket --blobs, in its stored form, and compare every row and every byte. The
target must be empty; it can be used only after the migration has ended.
After an interruption, run the same command again: it resumes.

The source is only read. Stop its writers first. If they write during the migration, the
comparison finds the difference, and another run copies it. An encrypted store stays
encrypted; set keyring (STET_KEYRING) to a copy of its keys.json wherever you open the
target. STET_TENANT names a tenant other than default.

Exit code 4 means that the target holds other data, or that the two differ at the end.`,
		Example: "  stet migrate --from ~/.local/share/stet --to postgres://stet@db/stet --blobs s3://my-bucket/stet",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !fleet.IsAddress(to) {
				return usage(errors.New("--to must be the address of a database, postgres://…"))
			}
			if from == "" {
				var err error
				if from, err = a.storeDir(); err != nil {
					return err
				}
			}
			return a.migrate(cmd.Context(), from, to)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "directory of the local store (default: the store in use)")
	cmd.Flags().StringVar(&to, "to", "", "address of the database")
	return cmd
}

func (a *app) migrate(ctx context.Context, from, to string) error {
	source, err := sqlite.Open(ctx, from, &sqlite.Options{ReadOnly: true})
	if errors.Is(err, sqlite.ErrNoStore) {
		return coded(ExitNotFound, "--from: no store at %s", from)
	}
	if err != nil {
		return err
	}
	target := *a
	// Nothing is opened with keys here.
	target.store, target.keyring, target.storeFlag = to, "", true
	f, err := target.openFleet(ctx, stet.Options{})
	if err != nil {
		return errors.Join(err, source.Close())
	}
	counted := &stageCounter{app: a}
	result, err := f.Migrate(ctx, source, a.tenant, &fleet.MigrateOptions{
		Encrypted: fileExists(filepath.Join(from, stet.KeyringName)), Progress: counted.set,
	})
	counted.done()
	if err := errors.Join(err, f.Close(), source.Close()); err != nil {
		if errors.Is(err, fleet.ErrDiffers) {
			err = fmt.Errorf("%w; run again while nothing writes to %s", err, from)
		}
		return err
	}
	return a.reportMigration(from, to, result)
}

func (a *app) reportMigration(from, to string, r fleet.MigrateResult) error {
	value := map[string]any{
		"schema": "stet.migrate.v1", "from": from, "to": shown(to), "resumed": r.Resumed, "blobs": r.Blobs, "bytes": r.Bytes, "rows": r.Rows,
		"copied_blobs": r.CopiedBlobs, "copied_bytes": r.CopiedBytes, "written_rows": r.Wrote,
	}
	text := fmt.Sprintf("copied %s (%s) and %s; all verified\n", plural(r.Blobs, "blob"), byteSize(r.Bytes), plural(r.Rows, "row"))
	if err := a.print(value, text); err != nil {
		return err
	}
	if fileExists(filepath.Join(from, stet.KeyringName)) {
		a.say("the store is encrypted: give each node a copy of %s and set STET_KEYRING to it", filepath.Join(from, stet.KeyringName))
	}
	return nil
}

// stageCounter shows the progress of each stage.
type stageCounter struct {
	app   *app
	doing string
	now   *counter
}

func (s *stageCounter) set(doing string, done, _ int64) {
	if doing != s.doing {
		s.done()
		s.doing, s.now = doing, s.app.counter(doing)
	}
	s.now.set(done)
}

func (s *stageCounter) done() {
	if s.now != nil {
		s.now.done()
		s.now = nil
	}
}
