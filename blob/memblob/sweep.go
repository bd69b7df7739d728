package memblob

import (
	"context"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
)

// List implements blob.Lister. It lists a snapshot and holds no lock while fn runs,
// so fn may use the store.
func (s *Store) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, info := range s.infos(after) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) infos(after blob.ID) []blob.Info {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var infos []blob.Info
	for id, e := range s.blobs {
		if id.Compare(after) > 0 {
			infos = append(infos, e.info(id))
		}
	}
	slices.SortFunc(infos, func(a, b blob.Info) int { return a.ID.Compare(b.ID) })
	return infos
}

// Refer moves blobs to the current generation, as a commit does with newly referenced
// blobs, and returns the absent ones. If any is absent it changes nothing, because
// such a commit fails as a whole.
func (s *Store) Refer(ids ...blob.ID) (missing []blob.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.blobs[id] == nil {
			missing = append(missing, id)
		}
	}
	if missing != nil {
		return missing
	}
	for _, id := range ids {
		s.storeLocked(id, s.blobs[id])
	}
	return nil
}

// Begin implements blob.Sweeper.
func (s *Store) Begin(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	return s.generation, nil
}

// Sweep implements blob.Sweeper.
func (s *Store) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	if err := ctx.Err(); err != nil {
		return blob.SweepResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	plan, err := blob.NewSweepPlan(generation, s.generation, opts)
	if err != nil {
		return blob.SweepResult{}, err
	}
	now := time.Now()
	for id, e := range s.blobs {
		age := int64(now.Sub(e.touched) / time.Second)
		plan.Look(e.info(id), e.generation < generation && age >= opts.GraceSeconds)
	}
	return plan.Remove(len(s.blobs)+1, func(page []blob.ID) ([]blob.ID, error) {
		for _, id := range page {
			delete(s.blobs, id)
		}
		return page, nil
	})
}
