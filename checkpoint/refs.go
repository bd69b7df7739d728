package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// newRefs lists the blobs of a tree that the base tree does not have at the same
// place: the new references of a commit that names the tree.
func newRefs(ctx context.Context, store blob.Store, base, tree blob.ID) ([]blob.ID, error) {
	r := refs{ctx: ctx, store: store, seen: map[blob.ID]struct{}{}}
	if err := r.dir(base, tree); err != nil {
		return nil, fmt.Errorf("list blobs of tree: %w", err)
	}
	return r.ids, nil
}

type refs struct {
	ctx   context.Context
	store blob.Store
	seen  map[blob.ID]struct{}
	ids   []blob.ID
}

func (r *refs) add(id blob.ID) bool {
	if _, ok := r.seen[id]; ok {
		return false
	}
	r.seen[id] = struct{}{}
	r.ids = append(r.ids, id)
	return true
}

func (r *refs) dir(base, node blob.ID) error {
	if node == base || node.IsZero() || !r.add(node) {
		return nil
	}
	entries, err := workspace.Load(r.ctx, r.store, node)
	if err != nil {
		return err
	}
	old, err := workspace.Load(r.ctx, r.store, base)
	if errors.Is(err, blob.ErrNotFound) {
		old, err = nil, nil // then everything is new
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		for len(old) > 0 && old[0].Name < e.Name {
			old = old[1:]
		}
		var was workspace.Entry
		if len(old) > 0 && old[0].Name == e.Name {
			was = old[0]
		}
		if err := r.entry(was, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *refs) entry(was, e workspace.Entry) error {
	if was.Kind == e.Kind && was.ID == e.ID && was.Chunked == e.Chunked {
		return nil
	}
	if e.Kind == workspace.Dir {
		if was.Kind != workspace.Dir {
			was.ID = blob.ID{}
		}
		return r.dir(was.ID, e.ID)
	}
	if !r.add(e.ID) || !e.Chunked {
		return nil
	}
	data, err := r.store.Get(r.ctx, e.ID)
	if err != nil {
		return err
	}
	chunks, err := workspace.DecodeChunks(data)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		r.add(c.ID)
	}
	return nil
}

// countFiles returns the number of files and links in a tree.
func countFiles(ctx context.Context, store blob.Store, tree blob.ID) (uint64, error) {
	var n uint64
	err := workspace.Walk(ctx, store, tree, func(_ string, e workspace.Entry) error {
		if e.Kind != workspace.Dir {
			n++
		}
		return nil
	})
	return n, err
}

// lookup returns the entry at a path of a tree, or nil.
func lookup(ctx context.Context, store blob.Store, tree blob.ID, path string) (*workspace.Entry, error) {
	e, err := workspace.Lookup(ctx, store, tree, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}
