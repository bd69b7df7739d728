package conversation

import (
	"context"
	"errors"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/kv"
)

// closure returns the blobs that the next root needs and the current one does
// not: those that are staged and those that were stored before by others, such
// as a client's images. A commit that names them all cannot end with a state
// that a collector has holes in. It reads only what is new.
func (c *Conversation) closure(ctx context.Context, root blob.ID, lenient bool) (refs, outside []blob.ID, err error) {
	refs = append(refs, root)
	var found graph.Set
	var starts []graph.Root
	note := func(kind graph.Kind, data []byte) error {
		rs, err := graph.Refs(kind, data)
		for _, r := range rs {
			if _, ok := c.staged[r.ID]; !ok && r.ID != root && found.Add(r.ID, r.Kind) {
				starts = append(starts, graph.Root{Kind: r.Kind, ID: r.ID})
			}
		}
		if err != nil && !lenient {
			return errors.Join(ErrInvalid, err)
		}
		return nil
	}
	if err := note(graph.State, c.draft.changed()); err != nil {
		return nil, nil, err
	}
	for id, st := range c.staged {
		refs = append(refs, id)
		if err := note(st.kind, st.blob.Data); err != nil {
			return nil, nil, err
		}
	}
	outside, err = c.reach(ctx, starts, lenient)
	return append(refs, outside...), outside, err
}

// reach returns everything that can be reached from blobs that others stored.
// Blobs that an earlier save of this handle named are returned, but not read
// again.
func (c *Conversation) reach(ctx context.Context, starts []graph.Root, lenient bool) ([]blob.ID, error) {
	if len(starts) == 0 {
		return nil, nil
	}
	var mu sync.Mutex // guards all: Skip is called by several workers
	all := make(map[blob.ID]bool)
	add := func(id blob.ID) {
		mu.Lock()
		defer mu.Unlock()
		all[id] = true
	}
	skip := func(_ blob.ID, r graph.Ref) bool {
		if _, ok := c.staged[r.ID]; ok {
			return true
		}
		if c.known.Has(r.ID) {
			add(r.ID)
			return true
		}
		return false
	}
	var fresh []graph.Root
	for _, r := range starts {
		if !skip(blob.ID{}, graph.Ref{Kind: r.Kind, ID: r.ID}) {
			fresh = append(fresh, r)
		}
	}
	var missing []blob.ID
	err := graph.Walk(ctx, c.store.blobs, graph.Roots(fresh...), &graph.Options{Workers: c.store.opts.Parallel, Skip: skip}, func(n graph.Node) error {
		switch {
		case errors.Is(n.Err, blob.ErrNotFound):
			missing = append(missing, n.ID)
			return nil
		case n.Err != nil && !lenient:
			return errors.Join(ErrInvalid, n.Err)
		}
		add(n.ID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 && !lenient {
		return nil, &kv.MissingBlobsError{IDs: missing}
	}
	ids := make([]blob.ID, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	if lenient {
		return c.present(ctx, ids)
	}
	return ids, nil
}

// present returns those of ids that are stored.
func (c *Conversation) present(ctx context.Context, ids []blob.ID) ([]blob.ID, error) {
	have, err := c.store.blobs.Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	kept := ids[:0]
	for i, id := range ids {
		if have[i] {
			kept = append(kept, id)
		}
	}
	return kept, nil
}
