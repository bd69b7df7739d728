package memblob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
)

// List implements blob.Lister. It lists what was there when it began, and holds
// no lock while fn runs, so that fn may use the store.
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
			infos = append(infos, blob.Info{ID: id, Stored: int64(len(e.data)), Base: e.base})
		}
	}
	slices.SortFunc(infos, func(a, b blob.Info) int { return a.ID.Compare(b.ID) })
	return infos
}

// Refer counts blobs to the current generation, as a commit does with those
// that it newly references, and returns the ones that are absent. If any is
// absent it changes nothing, since such a commit fails as a whole.
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

// Sweep implements blob.Sweeper. It refuses a nil opts.Live and a generation
// that Begin did not return: either would remove what somebody needs.
func (s *Store) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	if err := ctx.Err(); err != nil {
		return blob.SweepResult{}, err
	}
	if opts.Live == nil {
		return blob.SweepResult{}, errors.New("sweep blobs: SweepOptions.Live is nil")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation > s.generation {
		return blob.SweepResult{}, fmt.Errorf("sweep blobs: generation %d was not opened, the latest is %d", generation, s.generation)
	}
	kept := s.keptLocked(generation, opts)
	var result blob.SweepResult
	for id, e := range s.blobs {
		if kept[id] {
			result.Kept++
			result.KeptBytes += int64(len(e.data))
			continue
		}
		result.Removed++
		result.RemovedBytes += int64(len(e.data))
	}
	if !opts.DryRun {
		maps.DeleteFunc(s.blobs, func(id blob.ID, _ *entry) bool { return !kept[id] })
	}
	return result, nil
}

// keptLocked returns what stays: everything live, young or of the generation,
// and whatever those lean on, down to the last base.
func (s *Store) keptLocked(generation uint64, opts blob.SweepOptions) map[blob.ID]bool {
	now := time.Now()
	kept := make(map[blob.ID]bool, len(s.blobs))
	for id, e := range s.blobs {
		age := int64(now.Sub(e.touched) / time.Second)
		if e.generation < generation && age >= opts.GraceSeconds && !opts.Live(id) {
			continue
		}
		for !kept[id] && e != nil {
			kept[id] = true
			id, e = e.base, s.blobs[e.base]
		}
	}
	return kept
}
