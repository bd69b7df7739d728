package workspace

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// added collects the blobs of a tree that another does not have at the same place,
// each once.
type added struct {
	seen    map[blob.ID]struct{}
	ids     []blob.ID
	chunked []blob.ID // those that are lists of chunks
	files   int64     // entries of files and links that were not there
}

// newAdded makes room for about n blobs.
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

// entry takes a file or link that was not there, or as something else.
func (a *added) entry(before, after *indexEntry) {
	a.files++
	if before != nil && before.captured() && before.hasContentOf(after) {
		return
	}
	if a.id(after.id) && after.flags&flagChunked != 0 {
		a.chunked = append(a.chunked, after.id)
	}
}

// tree takes all of a tree that comes after nothing.
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

// all returns what was collected, and the chunks of it.
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
