package blob

import (
	"errors"
	"fmt"
)

// SweepPlan is the part of a sweep that is the same for every store: which blobs are
// removed, and in which order, so that a killed sweep leaves only whole blobs. The
// store passes all blobs to Look and then calls Remove.
type SweepPlan struct {
	opts      SweepOptions
	condemned map[ID]Info
	bases     []ID // of blobs that stay
	result    SweepResult
}

// NewSweepPlan begins a plan. It fails for arguments that would remove too much:
// options without Live, and a generation newer than the latest from Begin.
func NewSweepPlan(generation, latest uint64, opts SweepOptions) (*SweepPlan, error) {
	if opts.Live == nil {
		return nil, errors.New("sweep blobs: SweepOptions.Live is nil")
	}
	if generation > latest {
		return nil, fmt.Errorf("sweep blobs: generation %d was not opened; the latest is %d", generation, latest)
	}
	return &SweepPlan{opts: opts, condemned: make(map[ID]Info)}, nil
}

// Look decides about a blob. old means an earlier generation and an age beyond the
// grace period.
func (p *SweepPlan) Look(info Info, old bool) {
	if old && !p.opts.Live(info.ID) {
		p.condemned[info.ID] = info
		return
	}
	p.result.Kept++
	p.result.KeptBytes += info.Stored
	if !info.Base.IsZero() {
		p.bases = append(p.bases, info.Base)
	}
}

// reprieve keeps the bases of blobs that stay, and the bases of those.
func (p *SweepPlan) reprieve() {
	for _, id := range p.bases {
		for {
			info, isCondemned := p.condemned[id]
			if !isCondemned {
				break
			}
			delete(p.condemned, id)
			p.result.Kept++
			p.result.KeptBytes += info.Stored
			id = info.Base
		}
	}
	p.bases = nil
}

// Remove calls remove for pages of at most size blobs and counts the blobs that it
// reports as removed. remove must skip a blob that others lean on or that now belongs
// to the current generation. Remove tries it again in the next round and stops after
// a round without removals. With DryRun it only counts.
func (p *SweepPlan) Remove(size int, remove func(page []ID) (gone []ID, err error)) (SweepResult, error) {
	p.reprieve()
	if p.opts.DryRun {
		for _, info := range p.condemned {
			p.count(info)
		}
		return p.result, nil
	}
	for before := -1; len(p.condemned) > 0 && len(p.condemned) != before; {
		before = len(p.condemned)
		if err := p.round(size, remove); err != nil {
			return p.result, err
		}
	}
	return p.result, nil
}

func (p *SweepPlan) round(size int, remove func([]ID) ([]ID, error)) error {
	page := make([]ID, 0, min(size, len(p.condemned)))
	flush := func() error {
		gone, err := remove(page)
		for _, id := range gone {
			p.count(p.condemned[id])
			delete(p.condemned, id)
		}
		page = page[:0]
		return err
	}
	for id := range p.condemned {
		if page = append(page, id); len(page) == size {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(page) == 0 {
		return nil
	}
	return flush()
}

func (p *SweepPlan) count(info Info) {
	p.result.Removed++
	p.result.RemovedBytes += info.Stored
}
