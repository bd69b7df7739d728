package blob

import (
	"errors"
	"slices"
	"testing"
)

func planFor(t *testing.T, opts SweepOptions) *SweepPlan {
	t.Helper()
	p, err := NewSweepPlan(3, 3, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nothingLive(ID) bool { return false }

func TestSweepPlanRefusesWhatWouldRemoveTooMuch(t *testing.T) {
	if _, err := NewSweepPlan(1, 1, SweepOptions{}); err == nil {
		t.Error("without Live: no error")
	}
	if _, err := NewSweepPlan(2, 1, SweepOptions{Live: nothingLive}); err == nil {
		t.Error("a generation that was not opened: no error")
	}
}

// A chain of bases goes from its end, over several rounds; what something that
// stays leans on stays.
func TestSweepPlanOrder(t *testing.T) {
	var ids []ID
	for i := range 6 {
		ids = append(ids, Sum([]byte{byte(i)}))
	}
	look := func(p *SweepPlan) {
		for i := range 4 { // 3 leans on 2, on 1, on 0
			info := Info{ID: ids[i], Stored: 10}
			if i > 0 {
				info.Base = ids[i-1]
			}
			p.Look(info, true)
		}
		p.Look(Info{ID: ids[4], Stored: 5, Base: ids[1]}, false) // keeps 1 and 0
		p.Look(Info{ID: ids[5], Stored: 1}, true)
	}
	stored := map[ID]ID{ids[1]: ids[0], ids[2]: ids[1], ids[3]: ids[2], ids[4]: ids[1], ids[0]: {}, ids[5]: {}}
	var order []ID
	remove := func(page []ID) (gone []ID, err error) {
		if len(page) > 2 {
			t.Errorf("a page of %d", len(page))
		}
		for _, id := range page {
			leaning := false
			for _, base := range stored {
				leaning = leaning || base == id
			}
			if !leaning {
				delete(stored, id)
				gone = append(gone, id)
			}
		}
		order = append(order, gone...)
		return gone, nil
	}
	p := planFor(t, SweepOptions{Live: nothingLive, DryRun: true})
	look(p)
	want := SweepResult{Removed: 3, Kept: 3, RemovedBytes: 21, KeptBytes: 25}
	if got, err := p.Remove(2, remove); err != nil || got != want || order != nil {
		t.Errorf("dry run: %+v, %v, %v", got, err, order)
	}
	p = planFor(t, SweepOptions{Live: nothingLive})
	look(p)
	if got, err := p.Remove(2, remove); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if slices.Index(order, ids[3]) > slices.Index(order, ids[2]) || len(stored) != 3 {
		t.Errorf("removed %v, left %d", order, len(stored))
	}
}

// What is touched meanwhile stays, and an error ends the sweep with what went.
func TestSweepPlanEnds(t *testing.T) {
	p := planFor(t, SweepOptions{Live: nothingLive})
	for i := range 10 {
		p.Look(Info{ID: Sum([]byte{byte(i)}), Stored: 1}, true)
	}
	rounds := 0
	got, err := p.Remove(100, func(page []ID) ([]ID, error) {
		if rounds++; rounds == 1 {
			return page[:4], nil
		}
		return nil, nil
	})
	if err != nil || got.Removed != 4 || rounds != 2 {
		t.Errorf("got %+v, %v after %d rounds", got, err, rounds)
	}
	broken := errors.New("broken")
	if got, err = p.Remove(3, func(page []ID) ([]ID, error) { return page[:1], broken }); !errors.Is(err, broken) || got.Removed != 5 {
		t.Errorf("got %+v, %v", got, err)
	}
}
