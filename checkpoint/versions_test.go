package checkpoint

import (
	"context"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// readsOf counts the times that readers of a store are opened, and has lost some blobs.
type readsOf struct {
	blob.Store
	lost   blob.ID
	opened int
}

func (r *readsOf) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == r.lost {
		return nil, blob.NotFound(id)
	}
	return r.Store.Get(ctx, id)
}

func (r *readsOf) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	r.opened++
	return fn(r)
}

// TestVersionsAreReadTogether goes through more trees than are read at once. A lost tree from
// before the file was made is nobody's concern.
func TestVersionsAreReadTogether(t *testing.T) {
	f := newFixture(t)
	const checkpoints = 3 * firstTrees
	const young = checkpoints - 5
	var all []*Record
	for n := range checkpoints {
		f.write("old", fmt.Sprint(n), "dir/other", fmt.Sprint(n/2))
		if n >= young {
			f.write("dir/young", fmt.Sprint(n))
		}
		all = append(all, f.save(Request{}))
	}
	last := all[len(all)-1]
	store := &readsOf{Store: f.blobs}
	service := New(store, f.rows, &f.opts)
	for path, want := range map[string]int{"old": checkpoints, "dir/other": checkpoints / 2, "dir/young": checkpoints - young, "none": 0} {
		store.opened = 0
		found, err := service.Versions(t.Context(), path, last, nil)
		must(t, err)
		if len(found.List) != want || store.opened > 3 {
			t.Errorf("%s: %d versions with %d readers, want %d with few", path, len(found.List), store.opened, want)
		}
	}
	store.lost = all[young-3].Tree
	if found, err := service.Versions(t.Context(), "dir/young", last, nil); err != nil || len(found.List) != checkpoints-young {
		t.Errorf("with a lost tree before it: %v", err)
	}
	if _, err := service.Versions(t.Context(), "old", last, nil); err == nil {
		t.Error("a lost tree on the way is not reported")
	}
}
