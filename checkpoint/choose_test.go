package checkpoint

import (
	"context"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// Turns that begin at the same moment see each other when they choose their place.
func TestTurnsThatBeginTogetherSeeEachOther(t *testing.T) {
	f := newFixture(t)
	names := []string{"one", "two", "three", "four"}
	choose := func(_ context.Context, atWork Turns) (Place, error) {
		return Place{Conversation: names[len(atWork)], Root: blob.ID{}, Turn: uint64(len(atWork)) + 1}, nil
	}
	var group sync.WaitGroup
	records := make([]*Record, len(names))
	for i := range names {
		group.Go(func() {
			res, err := f.w.Checkpoint(context.Background(), Request{Side: Before, Choose: choose, Holder: Holder{ID: names[i]}})
			if err != nil {
				t.Error(err)
				return
			}
			records[i] = res.Record
		})
	}
	group.Wait()
	seen := map[string]uint64{}
	for _, rec := range records {
		if rec != nil {
			seen[rec.Conversation] = rec.Turn
		}
	}
	for i, name := range names {
		if seen[name] != uint64(i)+1 {
			t.Errorf("the turns are %v", seen)
			break
		}
	}
}
