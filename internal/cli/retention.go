package cli

import (
	"context"
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
	"github.com/stet-dev/stet/workspace"
)

// saveLimits are the flags about saves of conversations.
type saveLimits struct {
	maxAge, maxBytes string
	maxSaves         int
	drop             bool
}

func (s *saveLimits) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.maxAge, "max-age", "", "remove saves older than this, such as 90d or 36h")
	f.IntVar(&s.maxSaves, "max-saves", 0, "keep this many of the newest saves of each conversation")
	f.StringVar(&s.maxBytes, "max-bytes", "", "remove the oldest saves until conversations take no more than this, such as 2GiB")
	f.BoolVar(&s.drop, "drop-conversations", false, "allow --max-bytes to remove whole conversations")
}

// checkpointLimits are the flags about checkpoints.
type checkpointLimits struct {
	maxAge, maxBytes string
	maxCount         int
}

func (c *checkpointLimits) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.maxAge, "checkpoint-max-age", "", "remove checkpoints older than this, such as 90d or 36h")
	f.IntVar(&c.maxCount, "checkpoint-max-count", 0, "keep this many of the newest checkpoints of each directory")
	f.StringVar(&c.maxBytes, "checkpoint-max-bytes", "", "remove the oldest checkpoints until all take no more than this, such as 10GiB")
}

type policies struct {
	saves       conversation.Policy
	checkpoints checkpoint.Policy
}

// policies combines flags and settings; flags take precedence.
func (a *app) policies(flags gcFlags) (policies, error) {
	settings, err := a.settings()
	if err != nil {
		return policies{}, err
	}
	r := limits{settings: settings}
	p := r.policies(flags)
	return p, r.err
}

func (r *limits) policies(flags gcFlags) (p policies) {
	p.saves = conversation.Policy{
		MaxAge: r.age("max-age", "gc.max_age", flags.saves.maxAge), MaxSaves: r.count("max-saves", "gc.max_saves", flags.saves.maxSaves),
		MaxBytes: r.size("max-bytes", "gc.max_bytes", flags.saves.maxBytes), DropConversations: flags.saves.drop,
	}
	c := flags.checkpoints
	p.checkpoints = checkpoint.Policy{
		MaxAge:   r.age("checkpoint-max-age", "gc.checkpoint_max_age", c.maxAge),
		MaxCount: r.count("checkpoint-max-count", "gc.checkpoint_max_count", c.maxCount),
		MaxBytes: r.size("checkpoint-max-bytes", "gc.checkpoint_max_bytes", c.maxBytes),
	}
	return p
}

// limits reads limits from a flag or, if it is not given, a setting, and keeps the
// first error.
type limits struct {
	settings settings
	err      error
}

func (r *limits) age(flag, key, text string) time.Duration {
	if text == "" {
		text = r.settings.text(key)
	}
	v, err := parseAge(text)
	r.check(flag, err)
	return v
}

func (r *limits) size(flag, key, text string) int64 {
	if text == "" {
		text = r.settings.text(key)
	}
	v, err := parseSize(text)
	r.check(flag, err)
	return v
}

func (r *limits) count(flag, key string, n int) int {
	if n == 0 {
		n = int(r.settings.number(key))
	}
	if n < 0 {
		r.check(flag, fmt.Errorf("%d must not be negative", n))
	}
	return n
}

func (r *limits) check(flag string, err error) {
	if err != nil && r.err == nil {
		r.err = usage(fmt.Errorf("--%s: %w", flag, err))
	}
}

// retainSaves removes saves according to the policy.
func retainSaves(ctx context.Context, db *stet.DB, policy conversation.Policy, dryRun bool) (conversation.RetentionPlan, error) {
	plan := conversation.RetentionPlan{Saves: map[string][]uint64{}}
	if policy.MaxAge == 0 && policy.MaxSaves == 0 && policy.MaxBytes == 0 {
		return plan, nil
	}
	saves, err := db.Conversations().Retainable(ctx, sizes(db, policy.MaxBytes))
	if err != nil {
		return plan, err
	}
	plan = conversation.PlanRetention(saves, policy, time.Now())
	if !dryRun {
		_, err = db.Conversations().ApplyRetention(ctx, plan)
	}
	return plan, err
}

// sizes returns the lister that measures a budget, or nil without one.
func sizes(db *stet.DB, budget int64) blob.Lister {
	if budget <= 0 {
		return nil
	}
	return db
}

// forgotten is the result of a checkpoint policy.
type forgotten struct {
	list  []forgottenJSON
	kept  map[checkpoint.Held]int
	freed int64
}

type forgottenJSON struct {
	Workspace string   `json:"workspace"`
	Path      string   `json:"path"`
	PathBytes []byte   `json:"path_bytes,omitempty"`
	IDs       []string `json:"ids"`
	First     string   `json:"first"`
	Last      string   `json:"last"`
}

func (f forgottenJSON) span() string {
	if len(f.IDs) == 1 {
		return "checkpoint " + f.First
	}
	return fmt.Sprintf("%d checkpoints (%s to %s)", len(f.IDs), f.First, f.Last)
}

// keptText lists the checkpoints that stay although the policy would remove them.
func keptText(kept map[checkpoint.Held]int) string {
	var text strings.Builder
	for _, why := range slices.Sorted(maps.Keys(kept)) {
		fmt.Fprintf(&text, "kept %s beyond the policy: %s\n", plural(int64(kept[why]), "checkpoint"), why)
	}
	return text.String()
}

// retainCheckpoints removes checkpoints according to the policy.
func retainCheckpoints(ctx context.Context, db *stet.DB, policy checkpoint.Policy, dryRun bool) (forgotten, error) {
	out := forgotten{list: []forgottenJSON{}, kept: map[checkpoint.Held]int{}}
	if policy == (checkpoint.Policy{}) {
		return out, nil
	}
	service := db.Checkpoints()
	all, err := service.Retainable(ctx, sizes(db, policy.MaxBytes))
	if err != nil {
		return out, err
	}
	plan := checkpoint.PlanRetention(all, policy, time.Now())
	out.freed, out.kept = plan.Freed, plan.Kept
	numbers := map[string]uint64{}
	for _, r := range all {
		numbers[r.ID] = r.Number
	}
	for _, ws := range slices.Sorted(maps.Keys(plan.Checkpoints)) {
		ids := plan.Checkpoints[ws]
		path, err := service.WorkspacePath(ctx, ws)
		if err != nil {
			return out, err
		}
		name := func(id string) string { return fmt.Sprintf("c%d", numbers[id]) }
		out.list = append(out.list, forgottenJSON{Workspace: ws, Path: path, PathBytes: workspace.PathBytes(path), IDs: ids, First: name(ids[0]), Last: name(ids[len(ids)-1])})
	}
	if !dryRun {
		_, err = service.ApplyRetention(ctx, plan, author())
	}
	return out, err
}
