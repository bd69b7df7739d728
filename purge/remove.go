package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/mirror"
	"github.com/stet-dev/stet/upkeep"
)

// rounds is how often Remove starts over if writers bring the bytes back meanwhile.
const rounds = 3

// Remove removes what a plan found and what was added since, and then searches
// everything again. An error means that it stopped; it may be called again. Bytes
// that are left for another reason are in the result.
func (s *Service) Remove(ctx context.Context, plan *Plan) (*Result, error) {
	res := &Result{}
	for round := 1; ; round++ {
		if err := s.round(ctx, plan, res); err != nil {
			return res, fmt.Errorf("purge: %w", err)
		}
		next := &Plan{target: plan.target, find: plan.find.again()}
		if err := next.look(ctx); err != nil {
			return res, err
		}
		plan = next
		if plan.Contents == 0 && len(plan.Files) == 0 && len(plan.Conversations) == 0 && len(plan.Rows) == 0 && len(plan.Beside) == 0 || round == rounds {
			break
		}
		res.Remains = nil
	}
	return res, s.prove(ctx, plan, res)
}

// round carries out a plan.
func (s *Service) round(ctx context.Context, plan *Plan, res *Result) error {
	r := newRewriter(plan.find, true)
	if _, err := r.roots(ctx); err != nil {
		return err
	}
	doomed := make(map[blob.ID]bool)
	for _, id := range plan.pending {
		doomed[id] = true
	}
	for id, l := range plan.find.levels {
		if l == whole {
			doomed[id] = true
		}
	}
	for _, ids := range []map[blob.ID]bool{plan.find.exact, keys(r.swaps.by)} {
		maps.Copy(doomed, ids)
	}
	// What would bring the bytes back comes first: the records of agents, and what hooks
	// reported, which a process may be about to store.
	if err := s.cutOff(ctx, plan); err != nil {
		return err
	}
	if err := s.maskBeside(ctx, plan, res); err != nil {
		return err
	}
	// From here on, the next purge finishes what this one does not.
	if err := s.setPending(ctx, doomed); err != nil {
		return err
	}
	if err := r.rows(ctx, res); err != nil {
		return err
	}
	if err := s.strip(ctx, plan, doomed, res); err != nil {
		return err
	}
	if _, err := mirror.Release(ctx, s.stores.Rows, func(id blob.ID) bool { return doomed[id] }); err != nil {
		return err
	}
	if err := s.setPending(ctx, doomed); err != nil {
		return err
	}
	if err := s.sweep(ctx, doomed, res); err != nil {
		return err
	}
	return s.afterwards(ctx, doomed, res)
}

func keys(by map[blob.ID]blob.ID) map[blob.ID]bool {
	out := make(map[blob.ID]bool, len(by))
	for id := range by {
		out[id] = true
	}
	return out
}

// strip removes files from checkpoints, one workspace at a time.
func (s *Service) strip(ctx context.Context, plan *Plan, doomed map[blob.ID]bool, res *Result) error {
	work := make(map[string]map[string][]string) // paths by checkpoint by workspace
	for _, f := range plan.Files {
		if work[f.Workspace] == nil {
			work[f.Workspace] = make(map[string][]string)
		}
		for _, id := range f.Checkpoints {
			work[f.Workspace][id] = append(work[f.Workspace][id], f.Path)
		}
	}
	for _, ws := range slices.Sorted(maps.Keys(work)) {
		gone, err := s.stores.Checkpoints.Strip(ctx, ws, work[ws])
		for _, id := range gone {
			doomed[id] = true
		}
		if err != nil {
			return err
		}
		res.Checkpoints += len(work[ws])
	}
	return nil
}

// sweep removes the blobs, after making those that depend on them independent.
func (s *Service) sweep(ctx context.Context, doomed map[blob.ID]bool, res *Result) error {
	if err := s.standAlone(ctx, doomed); err != nil {
		return err
	}
	swept, err := s.stores.Upkeep.Collect(ctx, &upkeep.CollectOptions{Grace: -1, Only: func(id blob.ID) bool { return doomed[id] }})
	if err != nil {
		return err
	}
	res.Removed += swept.Removed
	res.RemovedBytes += swept.RemovedBytes
	if swept.Withheld > 0 {
		res.Remains = append(res.Remains, Remain{
			Where: "the store",
			Why:   fmt.Sprintf("%d blobs stay because damaged rows or blobs may need them; see 'stet fsck'", swept.Withheld),
		})
	}
	return nil
}

// standAlone stores again every blob that is kept as the difference from a removed
// one: the shortest first, each with a hint at the one before, since they are often
// the versions of a growing list.
func (s *Service) standAlone(ctx context.Context, doomed map[blob.ID]bool) error {
	if s.stores.Repairer == nil {
		return nil
	}
	var leaning []blob.ID
	err := s.stores.Lister.List(ctx, blob.ID{}, func(i blob.Info) error {
		if doomed[i.Base] && !doomed[i.ID] {
			leaning = append(leaning, i.ID)
		}
		return nil
	})
	if err != nil && !errors.Is(err, blob.ErrCorrupt) {
		return err
	}
	if err := s.shortestFirst(ctx, leaning); err != nil {
		return err
	}
	var before blob.ID
	for _, id := range leaning {
		data, err := s.stores.Blobs.Get(ctx, id)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
			continue // the sweep keeps its base
		}
		if err != nil {
			return err
		}
		b := blob.New(data)
		b.Like, before = before, b.ID
		if s.stores.Mirror != nil {
			if b.LocalOnly, err = s.stores.Mirror.StaysLocal(ctx, id); err != nil {
				return err
			}
		}
		if err := s.stores.Repairer.Repair(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// shortestFirst orders blobs by the sizes of their contents.
func (s *Service) shortestFirst(ctx context.Context, ids []blob.ID) error {
	sizes := make(map[blob.ID]int, len(ids))
	for _, id := range ids {
		data, err := s.stores.Blobs.Get(ctx, id)
		if err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrCorrupt) {
			return err
		}
		sizes[id] = len(data)
	}
	slices.SortStableFunc(ids, func(a, b blob.ID) int { return cmp.Compare(sizes[a], sizes[b]) })
	return nil
}

// afterwards removes copies and traces, and records those that it cannot remove.
func (s *Service) afterwards(ctx context.Context, doomed map[blob.ID]bool, res *Result) error {
	finished := true
	if s.stores.Mirror != nil {
		err := s.stores.Mirror.Remove(ctx, slices.Collect(maps.Keys(doomed)))
		if err == nil {
			res.Copies += len(doomed)
		} else {
			finished = false
			if err := res.left(ctx, "remote "+s.stores.Mirror.Name(), err); err != nil {
				return err
			}
		}
	}
	for _, step := range []struct {
		where string
		do    func(context.Context) error
	}{{"search index", s.stores.Reindex}, {"the store's files", s.stores.Scrub}} {
		if step.do == nil {
			continue
		}
		if err := step.do(ctx); err != nil {
			finished = false
			if err := res.left(ctx, step.where, err); err != nil {
				return err
			}
		}
	}
	if !finished {
		return nil
	}
	return s.setPending(ctx, nil)
}

// left records a place that could not be cleaned. It returns the error of an ended
// context.
func (r *Result) left(ctx context.Context, where string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Remains = append(r.Remains, Remain{Where: where, Why: err.Error()})
	return nil
}
