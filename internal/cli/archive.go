package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/upkeep"
)

type archiveFlags struct {
	dryRun, list, all, sweep bool
	idle                     string
	limit                    int
}

func (a *app) archiveCommand() *cobra.Command {
	var flags archiveFlags
	cmd := &cobra.Command{
		Use:     "archive [CONV...]",
		Short:   "Move idle conversations out of the database",
		GroupID: groupHouse,
		Long: `Move conversations that had no save for --idle, or the given ones, with their
checkpoints and agents, into a few objects of the store's bucket. In a local store,
these are files below packs in its directory. Archived conversations can be listed,
read, searched, renamed and exported as before. A save, a fork, or a pin of one of its
checkpoints brings a conversation back. The next 'stet gc' frees the space in the
database of those that are archived.

Conversations that were archived earlier, brought back, and not changed since are
skipped unless --all is given.

--list lists archived conversations. --sweep removes objects of the bucket that no
archived conversation uses, such as those that a crash left, once they are older than a
day. --dry-run only reports.`,
		Example:           "  stet archive --dry-run\n  stet archive --idle 90d\n  stet archive 01jcx4",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			idle, err := parseAge(flags.idle)
			if err != nil {
				return usage(fmt.Errorf("--idle: %w", err))
			}
			if flags.limit < 0 {
				return usage(fmt.Errorf("--limit must not be negative: %d", flags.limit))
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				switch {
				case flags.list:
					return a.listArchived(cmd.Context(), db)
				case flags.sweep:
					return a.sweepPacks(cmd.Context(), db)
				case len(args) > 0:
					return a.archiveThese(cmd.Context(), db, args, flags.dryRun)
				}
				return a.archiveIdle(cmd.Context(), db, idle, flags)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.idle, "idle", "30d", "minimum time since the last save, such as 90d or 36h")
	f.IntVar(&flags.limit, "limit", 0, "archive at most this many")
	f.BoolVar(&flags.all, "all", false, "include conversations that were brought back")
	f.BoolVar(&flags.list, "list", false, "list archived conversations")
	f.BoolVar(&flags.sweep, "sweep", false, "remove objects that no archived conversation uses")
	f.BoolVar(&flags.dryRun, "dry-run", false, "show what would be archived, archive nothing")
	exclude(cmd, "list", "sweep", "dry-run")
	return cmd
}

func (a *app) unarchiveCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:               "unarchive CONV...",
		Short:             "Bring archived conversations back into the database",
		GroupID:           groupHouse,
		Long:              "Bring back conversations that 'stet archive' moved out of the database. A save, a fork, or a pin\nof one of its checkpoints does that, too; a new title does not.",
		Example:           "  stet unarchive 01jcx4\n  stet unarchive --all",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage(errors.New("name conversations, or pass --all"))
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.unarchive(cmd.Context(), db, args)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "bring everything back")
	return cmd
}

// archivedJSON is an archived conversation. The schemas keep the names of the verbs of
// earlier releases.
type archivedJSON struct {
	ID      string `json:"id"`
	Time    string `json:"time,omitempty"`
	Rows    uint64 `json:"rows"`
	Blobs   uint64 `json:"blobs"`
	Objects int    `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

type archiveJSON struct {
	Schema  string         `json:"schema"`
	DryRun  bool           `json:"dry_run"`
	Sealed  []archivedJSON `json:"sealed"`
	Skipped int            `json:"skipped"`
	InUse   int            `json:"in_use,omitempty"`
	Damaged int            `json:"damaged,omitempty"`
	Large   int            `json:"too_large,omitempty"`
}

func archivedOf(i pack.Info) archivedJSON {
	out := archivedJSON{ID: i.ID, Rows: i.Rows, Blobs: i.Blobs, Objects: i.Objects, Bytes: i.Bytes}
	if !i.Time.IsZero() {
		out.Time = i.Time.UTC().Format(time.RFC3339)
	}
	return out
}

// archivedSum is what archived conversations take in the bucket.
type archivedSum struct {
	Conversations int64 `json:"conversations"`
	Objects       int64 `json:"objects"`
	Bytes         int64 `json:"bytes"`
}

func countArchived(ctx context.Context, db *stet.DB) (sum archivedSum, err error) {
	for info, err := range db.Archived(ctx) {
		if err != nil {
			return sum, err
		}
		sum.Conversations++
		sum.Objects += int64(info.Objects)
		sum.Bytes += info.Bytes
	}
	return sum, nil
}

// explainArchive adds exit codes to errors of archiving.
func explainArchive(err error) error {
	switch {
	case errors.Is(err, upkeep.ErrNoBucket):
		return usage(fmt.Errorf("%w; a server archives the conversations of its own store", err))
	case errors.Is(err, pack.ErrArchived) || errors.Is(err, pack.ErrChanged):
		return coded(ExitConflict, "%w", err)
	case errors.Is(err, pack.ErrNotArchived) || errors.Is(err, pack.ErrEmpty):
		return coded(ExitNotFound, "%w", err)
	}
	return err
}

func (a *app) archiveIdle(ctx context.Context, db *stet.DB, idle time.Duration, flags archiveFlags) error {
	if idle == 0 {
		idle = -1 // the option's zero value means the default
	}
	value := archiveJSON{Schema: "stet.seal.v1", DryRun: flags.dryRun, Sealed: []archivedJSON{}}
	count, workers := a.counter("archiving"), 1
	if a.fleet != nil {
		workers = fleet.ArchiveWorkers
	}
	result, err := db.ArchiveIdle(ctx, &upkeep.ArchiveOptions{
		IdleFor: idle, Limit: flags.limit, All: flags.all, DryRun: flags.dryRun, Workers: workers,
		Progress: func(i pack.Info) {
			value.Sealed = append(value.Sealed, archivedOf(i))
			count.set(int64(len(value.Sealed)))
		},
	})
	count.done()
	if err != nil {
		return explainArchive(err)
	}
	value.Skipped, value.InUse, value.Damaged, value.Large = result.Skipped, result.InUse, len(result.Damaged), result.TooLarge
	if err := a.print(value, archiveText(value)); err != nil {
		return err
	}
	return unreadable(result.Damaged)
}

func (a *app) archiveThese(ctx context.Context, db *stet.DB, names []string, dryRun bool) error {
	value := archiveJSON{Schema: "stet.seal.v1", DryRun: dryRun, Sealed: []archivedJSON{}}
	for _, name := range names {
		id, err := conversationID(ctx, db, name)
		if err != nil {
			return err
		}
		info := pack.Info{ID: id}
		if dryRun {
			err = db.CheckArchive(ctx, id)
		} else {
			info, err = db.Archive(ctx, id)
		}
		if err != nil {
			return explainArchive(err)
		}
		value.Sealed = append(value.Sealed, archivedOf(info))
	}
	return a.print(value, archiveText(value))
}

func archiveText(v archiveJSON) string {
	var text strings.Builder
	verb := "archived"
	if v.DryRun {
		verb = "would archive"
	}
	var sum archivedJSON
	for _, s := range v.Sealed {
		fmt.Fprintf(&text, "%s %s\n", verb, printable(s.ID))
		sum.Rows, sum.Blobs, sum.Bytes, sum.Objects = sum.Rows+s.Rows, sum.Blobs+s.Blobs, sum.Bytes+s.Bytes, sum.Objects+s.Objects
	}
	fmt.Fprintf(&text, "%s %s", verb, plural(int64(len(v.Sealed)), "conversation"))
	if !v.DryRun && len(v.Sealed) > 0 {
		fmt.Fprintf(&text, ": %s and %s in %s (%s)", plural(int64(sum.Rows), "row"), plural(int64(sum.Blobs), "blob"),
			plural(int64(sum.Objects), "object"), byteSize(sum.Bytes))
	}
	text.WriteString("\n")
	for _, left := range []struct {
		n   int
		why string
	}{{v.InUse, "in use"}, {v.Damaged, "damaged"}, {v.Large, "too large"}} {
		if left.n > 0 {
			fmt.Fprintf(&text, "skipped %s: %s\n", plural(int64(left.n), "conversation"), left.why)
		}
	}
	return text.String()
}

func (a *app) listArchived(ctx context.Context, db *stet.DB) error {
	value := archiveJSON{Schema: "stet.seal.v1", Sealed: []archivedJSON{}}
	var text strings.Builder
	for info, err := range db.Archived(ctx) {
		if err != nil {
			return err
		}
		value.Sealed = append(value.Sealed, archivedOf(info))
		fmt.Fprintf(&text, "%s  %s  %s in %s\n", printable(info.ID), info.Time.Local().Format("2006-01-02 15:04"),
			byteSize(info.Bytes), plural(int64(info.Objects), "object"))
	}
	return a.print(value, text.String())
}

func (a *app) sweepPacks(ctx context.Context, db *stet.DB) error {
	result, err := db.SweepPacks(ctx, 0)
	if err != nil {
		return explainArchive(err)
	}
	value := map[string]any{"schema": "stet.seal.sweep.v1", "removed": result.Removed, "removed_bytes": result.RemovedBytes, "kept": result.Kept}
	return a.print(value, fmt.Sprintf("removed %s (%s); %s remain\n", plural(result.Removed, "object"), byteSize(result.RemovedBytes), plural(result.Kept, "object")))
}

func (a *app) unarchive(ctx context.Context, db *stet.DB, names []string) error {
	ids := []string{}
	if len(names) == 0 {
		for info, err := range db.Archived(ctx) {
			if err != nil {
				return err
			}
			ids = append(ids, info.ID)
		}
	}
	for _, name := range names {
		id, err := conversationID(ctx, db, name)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if err := db.Unarchive(ctx, id); err != nil {
			return explainArchive(err)
		}
		a.say("restored %s", printable(id))
	}
	return a.print(map[string]any{"schema": "stet.unseal.v1", "unsealed": ids}, "")
}
