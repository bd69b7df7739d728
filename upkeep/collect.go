package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/stream"
)

// CollectOptions configure a collection; nil gives the defaults.
type CollectOptions struct {
	// DryRun counts and removes nothing.
	DryRun bool
	// Grace is the minimum age of a blob to be removed. Blobs that are not yet part
	// of a save are safe for that long. The default is an hour; a negative value
	// means none.
	Grace time.Duration
	// Progress, if set, is called from time to time with the number of live blobs
	// found.
	Progress func(live int)
	// SkipDamaged removes blobs even if a row that names roots, or a live blob, is
	// damaged. What only that refers to is then unknown and may be removed. Without
	// it nothing is removed in that case, because damage can often be repaired while
	// the rest exists.
	SkipDamaged bool
	// Only, if set, limits the removal to the blobs for which it returns true.
	Only func(blob.ID) bool
	// Workers is the number of blobs that are read at once, 8 by default.
	Workers int
}

// CollectResult reports what a collection did.
type CollectResult struct {
	// SweepResult counts what was removed, or would be, and what stays.
	blob.SweepResult
	// Live is the number of referenced blobs, Missing how many of them are missing,
	// Damaged how many could not be followed.
	Live, Missing, Damaged int
	// Unreadable lists rows and blobs that cannot be read, so that their references
	// are unknown. Unless SkipDamaged is set, nothing was removed because of them:
	// Withheld and WithheldBytes count what would have been removed.
	Unreadable              []error
	Withheld, WithheldBytes int64
}

// unreadable records damage, each once: roots are read more than once.
func (r *CollectResult) unreadable(err error) {
	for _, known := range r.Unreadable {
		if known.Error() == err.Error() {
			return
		}
	}
	r.Unreadable = append(r.Unreadable, err)
}

// Collect removes unreferenced blobs and expired streams while writers continue. It
// can be killed at any point: everything removed by then was not needed, and the
// next run starts from the beginning. If something cannot be read, its references
// are unknown: then everything is counted, nothing is removed, and the result says
// why. It takes about 90 bytes of memory for each live blob.
func (s *Service) Collect(ctx context.Context, opts *CollectOptions) (CollectResult, error) {
	sweeper := s.stores.Inventory
	if sweeper == nil {
		return CollectResult{}, ErrNoInventory
	}
	if opts == nil {
		opts = &CollectOptions{}
	}
	if !opts.DryRun {
		if _, err := stream.New(s.stores.Blobs, s.stores.Live, nil).Expire(ctx); err != nil {
			return CollectResult{}, fmt.Errorf("collect: %w", err)
		}
	}
	generation, err := sweeper.Begin(ctx)
	if err == nil && !opts.DryRun {
		err = conversation.New(s.stores.Blobs, s.stores.Live, nil).NoteCollection(ctx, generation)
	}
	if err != nil {
		return CollectResult{}, fmt.Errorf("collect: %w", err)
	}
	var res CollectResult
	live := new(graph.Set)
	// A scan misses a conversation that is forked behind it and then deleted ahead of
	// it, and roots that move while rows are read. Scanning until nothing new appears
	// finds them.
	for found := true; found; {
		before := live.Len()
		if err := s.mark(ctx, live, opts, &res); err != nil {
			return CollectResult{}, fmt.Errorf("collect: %w", err)
		}
		found = live.Len() > before
	}
	res.Live = live.Len()
	withhold := len(res.Unreadable) > 0 && !opts.SkipDamaged
	res.SweepResult, err = sweeper.Sweep(ctx, generation, blob.SweepOptions{
		Live: opts.stays(live), GraceSeconds: graceSeconds(opts.Grace), DryRun: opts.DryRun || withhold,
	})
	if err != nil {
		return CollectResult{}, fmt.Errorf("collect: %w", err)
	}
	if withhold {
		res.Withheld, res.WithheldBytes = res.Removed, res.RemovedBytes
		res.Kept, res.KeptBytes = res.Kept+res.Removed, res.KeptBytes+res.RemovedBytes
		res.Removed, res.RemovedBytes = 0, 0
	}
	return res, nil
}

// stays reports which blobs a sweep must not remove.
func (o *CollectOptions) stays(live *graph.Set) func(blob.ID) bool {
	if o.Only == nil {
		return live.Has
	}
	return func(id blob.ID) bool { return !o.Only(id) || live.Has(id) }
}

func graceSeconds(grace time.Duration) int64 {
	switch {
	case grace < 0:
		return 0
	case grace == 0:
		return 3600
	}
	return int64((grace + time.Second - 1) / time.Second)
}

// mark adds everything reachable to live.
func (s *Service) mark(ctx context.Context, live *graph.Set, opts *CollectOptions, res *CollectResult) error {
	visited := 0
	walk := &graph.Options{Workers: opts.Workers, Seen: live}
	roots := conversation.Readable(ctx, s.Holders().all(), res.unreadable)
	return graph.Walk(ctx, s.stores.Blobs, roots, walk, func(n graph.Node) error {
		if visited++; opts.Progress != nil && visited%4096 == 0 {
			opts.Progress(live.Len())
		}
		switch {
		case n.Err == nil:
		case errors.Is(n.Err, blob.ErrNotFound):
			res.Missing++
		case errors.Is(n.Err, blob.ErrCorrupt):
			res.Damaged++
			res.unreadable(fmt.Errorf("%s is needed and damaged: %w", n.Kind, n.Err))
		default:
			// Malformed contents were stored that way: they cannot be repaired, and
			// their readable references were followed.
			res.Damaged++
		}
		return nil
	})
}
