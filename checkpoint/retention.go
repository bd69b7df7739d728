package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Policy decides which checkpoints are kept. The oldest are removed first, and some
// are never removed: see Held. The zero Policy keeps everything.
type Policy struct {
	// MaxAge removes checkpoints that are older.
	MaxAge time.Duration
	// MaxCount removes all but that many of the newest checkpoints of a workspace.
	MaxCount int
	// MaxBytes removes the oldest until the stored files of all checkpoints take no more
	// than that.
	MaxBytes int64
}

// Held is why a checkpoint stays despite a policy; empty if it may be removed.
type Held string

// The reasons. A checkpoint has the first that applies.
const (
	HeldPinned Held = "pinned"
	HeldLatest Held = "the latest of its workspace"
	HeldUndo   Held = "needed to undo or redo"
	HeldTurn   Held = "a turn that began with it is going on"
	HeldYoung  Held = "less than an hour old"
	HeldRewind Held = "its workspace has an unfinished rewind"
)

// undoDepth is how many undos, and how many redos, keep their checkpoints.
const undoDepth = 10

// youngest is the age below which no checkpoint is removed: a running turn may have
// begun with it.
const youngest = turnLife

// Retained is a checkpoint with the data that a policy needs.
type Retained struct {
	ID, Workspace string
	Number        uint64
	Time          time.Time
	Held          Held
	// Bytes is what removing this checkpoint frees, after everything before it in
	// RemovalOrder was removed.
	Bytes int64

	tree, skipped blob.ID
}

// RetentionPlan lists what a policy removes.
type RetentionPlan struct {
	// Checkpoints are the ids to remove, by workspace, oldest first.
	Checkpoints map[string][]string
	// Kept counts, by reason, checkpoints that stay although the policy would remove
	// them.
	Kept map[Held]int
	// Freed and Left estimate the bytes that the next collection frees and that stay,
	// if the policy has a budget.
	Freed, Left int64
}

// RemovalOrder sorts checkpoints in the order of removal: oldest first, those that
// stay last.
func RemovalOrder(all []Retained) {
	rank := func(r Retained) int {
		if r.Held != "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b Retained) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Time.Compare(b.Time),
			cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Number, b.Number))
	})
}

// PlanRetention decides what a policy removes. It changes nothing.
func PlanRetention(all []Retained, p Policy, now time.Time) RetentionPlan {
	all = slices.Clone(all)
	RemovalOrder(all)
	plan := RetentionPlan{Checkpoints: map[string][]string{}, Kept: map[Held]int{}}
	count := map[string]int{}
	for _, r := range all {
		plan.Left += r.Bytes
		count[r.Workspace]++
	}
	over := plan.Left - p.MaxBytes // to be removed, regardless of holds
	for _, r := range all {
		tooOld := p.MaxAge > 0 && now.Sub(r.Time) > p.MaxAge
		tooMany := p.MaxCount > 0 && count[r.Workspace] > p.MaxCount
		tooLarge := p.MaxBytes > 0 && over > 0
		if !tooOld && !tooMany && !tooLarge {
			continue
		}
		count[r.Workspace]--
		over -= r.Bytes
		if r.Held != "" {
			plan.Kept[r.Held]++
			continue
		}
		plan.Checkpoints[r.Workspace] = append(plan.Checkpoints[r.Workspace], r.ID)
		plan.Freed += r.Bytes
		plan.Left -= r.Bytes
	}
	return plan
}

// Retainable returns all readable checkpoints for PlanRetention. It measures bytes
// only if sizes, which lists the blobs, is not nil; that requires a walk through all
// trees.
func (s *Service) Retainable(ctx context.Context, sizes blob.Lister) ([]Retained, error) {
	var all []Retained
	for row, err := range kv.Each(ctx, s.rows, keyspace.Checkpoints(), false) {
		if err != nil && (row.Key == "" || !kv.Damaged(err)) {
			return nil, fmt.Errorf("list checkpoints: %w", err)
		}
		var rec *Record
		if err == nil {
			rec, err = readRecord(row)
		}
		if err != nil {
			continue // it stays: its age is unknown
		}
		if kept, err := s.keptWithConversation(ctx, rec); err != nil {
			return nil, fmt.Errorf("list checkpoints: %w", err)
		} else if kept {
			continue
		}
		all = append(all, Retained{
			ID: rec.ID, Workspace: rec.Workspace, Number: rec.Number, Time: rec.Time, tree: rec.Tree, skipped: rec.notCaptured,
		})
	}
	held, err := s.held(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Held = held.of(&all[i], s.opts.Now())
	}
	if sizes == nil {
		return all, nil
	}
	return all, s.measure(ctx, all, sizes)
}

// measure fills in Bytes. It walks the trees in reverse removal order and counts each
// blob for the first tree that has it: removing that checkpoint removes the blob.
func (s *Service) measure(ctx context.Context, all []Retained, sizes blob.Lister) error {
	stored := map[blob.ID]int64{}
	err := sizes.List(ctx, blob.ID{}, func(i blob.Info) error {
		stored[i.ID] = i.Stored
		return nil
	})
	if err != nil {
		return fmt.Errorf("measure checkpoints: %w", err)
	}
	RemovalOrder(all)
	seen := map[blob.ID]struct{}{}
	for i := range slices.Backward(all) {
		r := &all[i]
		visit := func(id blob.ID) bool {
			if _, ok := seen[id]; ok {
				return false
			}
			seen[id] = struct{}{}
			r.Bytes += stored[id]
			return true
		}
		if !r.skipped.IsZero() {
			visit(r.skipped)
		}
		if err := workspace.Refs(ctx, s.blobs, r.tree, visit); err != nil {
			return fmt.Errorf("measure checkpoint %s: %w", r.ID, err)
		}
	}
	return nil
}
