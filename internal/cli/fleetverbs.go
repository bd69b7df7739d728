package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/search/pgsearch"
)

func (a *app) fleetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fleet",
		Short:   "Manage a store in a database that several servers share",
		GroupID: groupServe,
		Long: `Manage a store in a database and a bucket: --store postgres://… --blobs s3://….
Every verb works on the tenant that the setting tenant (STET_TENANT) names; if it is
not set, on the tenant default.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.fleetTenants(), a.fleetEpoch(), a.fleetHouse(), a.fleetSearch())
	return cmd
}

// withFleet runs fn with the backends of the store.
func (a *app) withFleet(ctx context.Context, fn func(*fleet.Fleet) error) error {
	if !fleet.IsAddress(a.storePlace()) {
		return usage(errors.New("this verb needs a store in a database: --store postgres://…"))
	}
	f, err := a.openFleet(ctx, stet.Options{})
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

func (a *app) fleetTenants() *cobra.Command {
	return &cobra.Command{
		Use:     "tenants",
		Short:   "List the tenants with data",
		Example: "  for t in $(stet fleet tenants); do STET_TENANT=$t stet gc; done",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(f *fleet.Fleet) error {
				names, err := f.Tenants(cmd.Context())
				if err != nil {
					return err
				}
				text := strings.Join(names, "\n")
				if text != "" {
					text += "\n"
				}
				return a.print(map[string]any{"schema": "stet.fleet.tenants.v1", "tenants": names}, text)
			})
		},
	}
}

func (a *app) fleetEpoch() *cobra.Command {
	var next bool
	cmd := &cobra.Command{
		Use:   "epoch",
		Short: "Show the epoch of the database, or begin the next one with --next",
		Long: `Show the epoch of the database: the number of times that it was restored from a
backup. Pass --next once after a restore, before the servers start, so that references
to the time before the restore can be distinguished. Even without it, followers that are
ahead of the restored data get the state of their agent again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withFleet(cmd.Context(), func(f *fleet.Fleet) error {
				ask := f.Postgres().Epoch
				if next {
					ask = f.Postgres().BumpEpoch
				}
				epoch, err := ask(cmd.Context())
				if err != nil {
					return err
				}
				return a.print(map[string]any{"schema": "stet.fleet.epoch.v1", "epoch": epoch}, fmt.Sprintln(epoch))
			})
		},
	}
	cmd.Flags().BoolVar(&next, "next", false, "begin the next epoch")
	return cmd
}

func (a *app) fleetSearch() *cobra.Command {
	return &cobra.Command{
		Use:   "search [off|on|archived]",
		Short: "Show or change what the search index of the tenant holds",
		Long: `Show or change what the search index of the tenant holds. With on, the default, the
index has the words of all conversations that are not archived; with archived, it also
has those of archived ones. With off, there is no index, and searches fail. The servers
change the index in the background.`,
		Example: "  STET_TENANT=shop stet fleet search archived",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if _, err := pgsearch.ParseMode(args[0]); err != nil {
					return usage(err)
				}
			}
			return a.withFleet(cmd.Context(), func(f *fleet.Fleet) error {
				if f.Encrypted() {
					return usage(errors.New("an encrypted fleet keeps its search index in the memory of each server; it is always on"))
				}
				if len(args) == 1 {
					if err := f.SetSearchMode(cmd.Context(), a.tenant, pgsearch.Mode(args[0])); err != nil {
						return err
					}
				}
				mode, err := f.SearchMode(cmd.Context(), a.tenant)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"schema": "stet.fleet.search.v1", "search": mode}, fmt.Sprintln(mode))
			})
		},
	}
}

// sweepGrace is the minimum age of an unnamed object to be removed: longer than any
// write takes.
const sweepGrace = 24 * time.Hour

// sweepBucket removes leftovers of killed nodes from the bucket of a fleet.
func (a *app) sweepBucket(ctx context.Context, db *stet.DB) error {
	if a.fleet == nil || a.fleet.Bucket() == nil {
		return nil
	}
	swept, err := a.fleet.Sweep(ctx, a.tenant, sweepGrace)
	if err != nil {
		return err
	}
	packs, err := db.SweepPacks(ctx, sweepGrace)
	if n := int64(swept.Objects) + packs.Removed; err == nil && n+int64(swept.Uploads) > 0 {
		a.say("removed %s and %s from the bucket", plural(n, "object"), plural(int64(swept.Uploads), "unfinished upload"))
	}
	return err
}

// initFleetKeys creates the keyring of an empty fleet.
func (a *app) initFleetKeys(ctx context.Context, passphrase bool) error {
	path := a.keyring
	if path == "" {
		return usage(errors.New("set keyring or STET_KEYRING to the file for the keys"))
	}
	if fileExists(path) {
		return coded(ExitConflict, "%s already has keys", path)
	}
	bare := *a
	bare.keyring = "" // it is not there yet
	var tenants []string
	var found sealed.Evidence
	err := bare.withFleet(ctx, func(f *fleet.Fleet) (err error) {
		if found, err = f.Seals(ctx); err == nil {
			tenants, err = f.Tenants(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if found == sealed.Marked || found == sealed.Keyed {
		return coded(ExitConflict, "the database is already encrypted, but there is no keyring at %s; put a copy there", path)
	}
	if found == sealed.Plain {
		return coded(ExitConflict, "the database holds unencrypted tokens; use an empty one")
	}
	if len(tenants) > 0 {
		return coded(ExitConflict, "the database holds unencrypted data of %s; use an empty one", plural(int64(len(tenants)), "tenant"))
	}
	unlock, err := a.newUnlock(ctx, filepath.Dir(path), passphrase)
	if err != nil {
		return err
	}
	return a.createRing(shown(a.storePlace()), path, unlock, func() error {
		f, err := fleet.Open(ctx, fleet.Config{Database: a.storePlace(), Blobs: a.bucket, Keyring: path, Unlock: &unlock.Unlock})
		if err != nil {
			return err
		}
		return errors.Join(f.Mark(ctx), f.Close())
	})
}
