package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/upkeep"
)

// HouseOptions configure the tasks that every fleet needs. A task whose interval is 0 is
// left out.
type HouseOptions struct {
	// ArchiveEvery is the interval of archiving, and ArchiveIdle the time without a save
	// after which a conversation is archived. Without a bucket nothing is archived.
	ArchiveEvery, ArchiveIdle time.Duration
	// CollectEvery is the interval of collections, and Grace the minimum age of what
	// they remove.
	CollectEvery, Grace time.Duration
	// Saves and Checkpoints are applied before each collection.
	Saves       conversation.Policy
	Checkpoints checkpoint.Policy
}

// sweepGrace is the minimum age of an object without a row before it is removed:
// longer than any write takes.
const sweepGrace = 24 * time.Hour

// ArchiveWorkers is how many conversations of a tenant are archived at once: each
// waits for the database and the bucket, and concurrent waits share round trips.
const ArchiveWorkers = 16

// HouseTasks returns the tasks for KeepHouse, for all tenants.
func (f *Fleet) HouseTasks(o HouseOptions) []Task {
	var tasks []Task
	if o.ArchiveEvery > 0 && f.bucket != nil {
		tasks = append(tasks, Task{Name: "archive", Every: o.ArchiveEvery, Run: func(ctx context.Context) (done int64, err error) {
			err = f.EachTenant(ctx, func(ctx context.Context, _ string, db *stet.DB) error {
				result, err := db.ArchiveIdle(ctx, &upkeep.ArchiveOptions{IdleFor: orNone(o.ArchiveIdle), Workers: ArchiveWorkers})
				done += int64(result.Archived)
				for _, damaged := range result.Damaged {
					err = errors.Join(err, damaged.Err)
				}
				return err
			})
			return done, err
		}})
	}
	if o.CollectEvery > 0 {
		tasks = append(tasks, Task{Name: "collect", Every: o.CollectEvery, Run: func(ctx context.Context) (done int64, err error) {
			err = f.EachTenant(ctx, func(ctx context.Context, name string, db *stet.DB) error {
				removed, err := f.collect(ctx, name, db, o)
				done += removed
				return err
			})
			return done, err
		}})
	}
	return tasks
}

// orNone is a duration for options whose zero value means the default.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// collect applies the policies to a tenant, and removes unreferenced content and what
// killed nodes left in the bucket.
func (f *Fleet) collect(ctx context.Context, name string, db *stet.DB, o HouseOptions) (removed int64, err error) {
	err = errors.Join(retainSaves(ctx, db, o.Saves), retainCheckpoints(ctx, db, o.Checkpoints))
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	result, failed := db.Collect(ctx, &upkeep.CollectOptions{Grace: orNone(o.Grace)})
	if err = errors.Join(err, failed, errors.Join(result.Unreadable...)); failed != nil {
		return 0, err
	}
	removed = result.Removed
	if f.bucket == nil {
		return removed, err
	}
	swept, failed := f.Sweep(ctx, name, sweepGrace)
	err = errors.Join(err, failed)
	packs, failed := db.SweepPacks(ctx, sweepGrace)
	return removed + int64(swept.Objects+swept.Uploads) + packs.Removed, errors.Join(err, failed)
}

// sizes returns the lister that measures a budget, or nil without a budget.
func sizes(db *stet.DB, budget int64) blob.Lister {
	if budget <= 0 {
		return nil
	}
	return db
}

func retainSaves(ctx context.Context, db *stet.DB, policy conversation.Policy) error {
	if policy.MaxAge == 0 && policy.MaxSaves == 0 && policy.MaxBytes == 0 {
		return nil
	}
	saves, err := db.Conversations().Retainable(ctx, sizes(db, policy.MaxBytes))
	if err == nil {
		_, err = db.Conversations().ApplyRetention(ctx, conversation.PlanRetention(saves, policy, time.Now()))
	}
	if err != nil {
		return fmt.Errorf("remove old saves: %w", err)
	}
	return nil
}

func retainCheckpoints(ctx context.Context, db *stet.DB, policy checkpoint.Policy) error {
	if policy == (checkpoint.Policy{}) {
		return nil
	}
	all, err := db.Checkpoints().Retainable(ctx, sizes(db, policy.MaxBytes))
	if err == nil {
		_, err = db.Checkpoints().ApplyRetention(ctx, checkpoint.PlanRetention(all, policy, time.Now()), "housekeeping")
	}
	if err != nil {
		return fmt.Errorf("remove old checkpoints: %w", err)
	}
	return nil
}
