package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/upkeep"
)

type gcFlags struct {
	dryRun, skipDamaged bool
	grace               time.Duration
	saves               saveLimits
	checkpoints         checkpointLimits
}

func (a *app) gcCommand() *cobra.Command {
	var flags gcFlags
	cmd := &cobra.Command{
		Use:     "gc",
		Short:   "Remove unreferenced content",
		GroupID: groupHouse,
		Long: `Remove the blobs that no conversation, checkpoint or operation refers to. Other
commands can run at the same time. Blobs younger than --grace stay, because a writer
may be about to refer to them. You may interrupt the collection at any time.

With a retention policy (--max-age, --max-saves, --max-bytes, or gc.* in the
settings), old saves of conversations are removed first. The current save of a
conversation and pinned saves always stay, unless --drop-conversations allows a byte
limit to remove whole conversations, least recently changed first.

Checkpoints have their own policy (--checkpoint-max-age and so on, or gc.checkpoint_*
in the settings), and the oldest go first. The policy never removes pinned checkpoints,
the latest one of each directory, those that the next ten undos or redos need, those at
the beginning of a running turn, and those that are less than an hour old.

Recently stored content is compressed at the end. If the store is in a database,
unreferenced objects of the bucket are removed once they are a day old.

If a row or a needed blob is damaged, its references are unknown. Then no blob is
removed, the damage is listed, and the exit code is 6. 'stet fsck --quarantine' sets
damaged rows aside; --skip-damaged removes blobs anyway.

--dry-run shows what would be removed and why, and removes nothing.`,
		Example: "  stet gc --dry-run\n  stet gc --max-age 90d\n  stet gc --max-bytes 2GiB --checkpoint-max-bytes 10GiB",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			policies, err := a.policies(flags)
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.collect(cmd.Context(), db, policies, flags)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.dryRun, "dry-run", false, "show what would be removed, remove nothing")
	f.DurationVar(&flags.grace, "grace", time.Hour, "minimum age of a blob to remove")
	f.BoolVar(&flags.skipDamaged, "skip-damaged", false, "remove blobs even if a row or a needed blob is damaged (this may remove blobs that only it refers to)")
	flags.saves.add(cmd)
	flags.checkpoints.add(cmd)
	return cmd
}

type gcJSON struct {
	Schema        string              `json:"schema"`
	DryRun        bool                `json:"dry_run"`
	Removed       countJSON           `json:"removed"`
	Kept          countJSON           `json:"kept"`
	Live          int                 `json:"live"`
	Missing       int                 `json:"missing"`
	Damaged       int                 `json:"damaged"`
	Saves         map[string][]uint64 `json:"saves"`
	Conversations []string            `json:"conversations"`
	Checkpoints   []forgottenJSON     `json:"checkpoints"`
	// KeptCheckpoints counts, by reason, checkpoints kept beyond the policy.
	KeptCheckpoints map[checkpoint.Held]int `json:"kept_checkpoints"`
	// Freed estimates what removing saves and checkpoints frees, if there is a
	// budget.
	Freed  int64  `json:"freed_by_retention"`
	Reason string `json:"reason"`
	// Withheld would have been removed if Unreadable were empty.
	Withheld   countJSON `json:"withheld"`
	Unreadable []string  `json:"unreadable"`
}

type countJSON struct {
	Blobs int64 `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

func (a *app) collect(ctx context.Context, db *stet.DB, policies policies, flags gcFlags) error {
	// A conversation that cannot be read stays; the collection goes on.
	var damaged []error
	keep := func(err error) error {
		damage, other := damageOnly(err)
		if damage != nil {
			damaged = append(damaged, fmt.Errorf("the policy was not applied to it: %w", damage))
		}
		return other
	}
	plan, err := retainSaves(ctx, db, policies.saves, flags.dryRun)
	if err := keep(err); err != nil {
		return err
	}
	forgotten, err := retainCheckpoints(ctx, db, policies.checkpoints, flags.dryRun)
	if err := keep(err); err != nil {
		return err
	}
	grace := flags.grace
	if grace == 0 {
		grace = -1 // the option's zero value means the default
	}
	marked := a.counter("marking")
	result, err := db.Collect(ctx, &upkeep.CollectOptions{
		DryRun: flags.dryRun, Grace: grace, SkipDamaged: flags.skipDamaged,
		Progress: func(live int) { marked.set(int64(live)) },
	})
	marked.done()
	if err != nil {
		return err
	}
	if !flags.dryRun {
		if err := logCollection(ctx, db, result.SweepResult, plan); err != nil {
			return err
		}
	}
	value := gcJSON{
		Schema: "stet.gc.v1", DryRun: flags.dryRun, Live: result.Live, Missing: result.Missing, Damaged: result.Damaged,
		Removed: countJSON{result.Removed, result.RemovedBytes}, Kept: countJSON{result.Kept, result.KeptBytes},
		Saves: plan.Saves, Conversations: append([]string{}, plan.Conversations...), Checkpoints: forgotten.list, KeptCheckpoints: forgotten.kept,
		Freed: plan.Freed + forgotten.freed, Reason: "unreferenced",
		Withheld: countJSON{result.Withheld, result.WithheldBytes}, Unreadable: []string{},
	}
	for _, err := range result.Unreadable {
		value.Unreadable = append(value.Unreadable, err.Error())
	}
	damage := damageError("row or blob", append(damaged, result.Unreadable...))
	if err := a.print(value, gcText(value)); err != nil || flags.dryRun {
		return errors.Join(err, damage)
	}
	if err := a.sweepBucket(ctx, db); err != nil {
		return err
	}
	// Last, because it needs room: removals are logged and reported even if the disk
	// is full.
	if err := a.compact(ctx, db); err != nil {
		return err
	}
	return damage
}

// logCollection records the collection in the log of operations.
func logCollection(ctx context.Context, db *stet.DB, swept blob.SweepResult, plan conversation.RetentionPlan) error {
	if swept.Removed == 0 && len(plan.Saves) == 0 && len(plan.Conversations) == 0 {
		return nil
	}
	return db.Checkpoints().Log(ctx, &checkpoint.Operation{
		Kind: "gc", Author: author(),
		Description: fmt.Sprintf("removed %s (%s)", plural(swept.Removed, "blob"), byteSize(swept.RemovedBytes)),
	})
}

func gcText(v gcJSON) string {
	var text strings.Builder
	verb := "removed"
	if v.DryRun {
		verb = "would remove"
	}
	for _, id := range slices.Sorted(maps.Keys(v.Saves)) {
		fmt.Fprintf(&text, "%s %s of conversation %s: older than the policy keeps\n", verb, plural(int64(len(v.Saves[id])), "save"), printable(id))
	}
	for _, id := range v.Conversations {
		fmt.Fprintf(&text, "%s conversation %s: over the budget\n", verb, printable(id))
	}
	for _, f := range v.Checkpoints {
		fmt.Fprintf(&text, "%s %s of %s: older than the policy keeps\n", verb, f.span(), printable(f.Path))
	}
	text.WriteString(keptText(v.KeptCheckpoints))
	if v.DryRun && v.Freed > 0 {
		fmt.Fprintf(&text, "that would free about %s\n", byteSize(v.Freed))
	}
	fmt.Fprintf(&text, "%s %s (%s) without references; %s (%s) remain\n",
		verb, plural(v.Removed.Blobs, "blob"), byteSize(v.Removed.Bytes), plural(v.Kept.Blobs, "blob"), byteSize(v.Kept.Bytes))
	if len(v.Unreadable) > 0 && v.Withheld.Blobs > 0 {
		fmt.Fprintf(&text, "kept %s (%s) of these only because damaged rows or blobs may need them\n", plural(v.Withheld.Blobs, "blob"), byteSize(v.Withheld.Bytes))
	}
	if bad := v.Missing + v.Damaged; bad > 0 {
		fmt.Fprintf(&text, "%s missing or damaged; see 'stet fsck'\n", plural(int64(bad), "needed blob"))
	}
	return text.String()
}
