package workspace

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// added collects, each once, the blobs of a tree that another tree does not have at
// the same place.
type added struct {
	seen    map[blob.ID]struct{}
	ids     []blob.ID
	chunked []blob.ID // those that are lists of chunks
	files   int64     // new entries of files and links
}

// newAdded allocates for about n blobs.
func newAdded(n int64) *added {
	return &added{seen: make(map[blob.ID]struct{}, n), ids: make([]blob.ID, 0, n)}
}

func (a *added) id(id blob.ID) bool {
	if _, ok := a.seen[id]; ok || id.IsZero() {
		return false
	}
	a.seen[id] = struct{}{}
	a.ids = append(a.ids, id)
	return true
}

// entry adds a new or changed file or link.
func (a *added) entry(before, after *indexEntry) {
	a.files++
	if before != nil && before.captured() && before.hasContentOf(after) {
		return
	}
	if a.id(after.id) && after.flags&flagChunked != 0 {
		a.chunked = append(a.chunked, after.id)
	}
}

// tree adds everything of a new tree.
func (a *added) tree(ctx context.Context, store blob.Store, r *dirRef) error {
	d, err := r.load(ctx, store)
	if err != nil {
		return err
	}
	a.id(d.node)
	for i := range d.entries {
		e := &d.entries[i]
		switch sub := subOf(e, d.subs); {
		case !e.captured():
		case sub != nil:
			err = a.tree(ctx, store, sub)
		default:
			a.entry(nil, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all returns the collected blobs and their chunks.
func (a *added) all(ctx context.Context, store blob.Store) ([]blob.ID, error) {
	for _, id := range a.chunked {
		data, err := store.Get(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("list chunks: %w", err)
		}
		chunks, err := DecodeChunks(data)
		if err != nil {
			return nil, fmt.Errorf("list chunks of %s: %w", id, err)
		}
		for _, c := range chunks {
			a.id(c.ID)
		}
	}
	return a.ids, nil
}
