package conversation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// needs are the blobs that the next root needs and the current one does not.
type needs struct {
	staged  []blob.Blob // to be stored
	outside []blob.ID   // stored earlier by others, such as images of a client
	// expect lists what must still hold so that the rest, which was not read, is safe
	// from a collector.
	expect []kv.Expect
	// firm are blobs of outside that later saves need not read again while the
	// collections row has the version in expect.
	firm []blob.ID
}

// refs returns all needed blobs and the root, for the commit.
func (n needs) refs(root blob.ID) []blob.ID {
	refs := append([]blob.ID{root}, n.outside...)
	for _, b := range n.staged {
		refs = append(refs, b.ID)
	}
	return refs
}

// closure finds the blobs that the next root needs, by following the changes. A
// commit that names all of them cannot lose one to a collector. Staged forms that
// were replaced again are not included. It reads only new blobs.
func (c *Conversation) closure(ctx context.Context, lenient bool) (needs, error) {
	f := &follower{c: c, lenient: lenient, used: make(map[blob.ID]bool), outside: make(map[blob.ID]bool), leans: make(map[uint64]kv.Expect)}
	changed := c.draft.changed()
	if err := f.follow(graph.State, changed); err != nil {
		return needs{}, err
	}
	if !lenient {
		if err := c.nesting.Check(ctx, f.get, graph.State, changed); err != nil {
			return needs{}, errors.Join(ErrInvalid, err)
		}
	}
	if len(f.starts) > 0 {
		if err := c.lookForCollections(ctx); err != nil {
			return needs{}, err
		}
	}
	// Blobs of others may name staged ones, and the other way round.
	for len(f.starts) > 0 {
		if err := f.reach(ctx); err != nil {
			return needs{}, err
		}
	}
	if len(f.missing) > 0 && !lenient {
		return needs{}, &kv.MissingBlobsError{IDs: f.missing}
	}
	f.needs.outside = slices.Collect(maps.Keys(f.outside))
	f.recordConditions()
	if lenient {
		err := c.present(ctx, &f.needs)
		return f.needs, err
	}
	return f.needs, nil
}

// follower collects needs.
type follower struct {
	c       *Conversation
	lenient bool
	needs   needs
	seen    graph.Set
	used    map[blob.ID]bool // staged blobs in needs
	starts  []graph.Root     // unread blobs of others
	missing []blob.ID
	firm    []blob.ID // blobs of others that were read

	mu      sync.Mutex // guards what follows, since workers call skip
	outside map[blob.ID]bool
	back    []graph.Ref          // staged blobs named by blobs of others
	known   bool                 // a blob was skipped because an earlier save named it
	leaning bool                 // a blob of others reaches a skipped state of the history
	leans   map[uint64]kv.Expect // saves whose states were skipped
}

// recordConditions records the conditions of the needs. A blob that reaches the history is not
// firm: parts of the history may be removed without a collection.
func (f *follower) recordConditions() {
	f.needs.expect = slices.Collect(maps.Values(f.leans))
	if !f.leaning {
		f.needs.firm = f.firm
	}
	if f.known || len(f.needs.firm) > 0 {
		f.needs.expect = append(f.needs.expect, kv.Expect{Key: collectionsKey, Version: f.c.knownAt})
	}
}

// get reads a blob, staged or stored.
func (f *follower) get(ctx context.Context, id blob.ID) ([]byte, error) {
	if b, ok := f.c.staged[id]; ok {
		whole, err := blob.Whole(ctx, f.c.store.blobs, b)
		return whole.Data, err
	}
	return f.c.store.blobs.Get(ctx, id)
}

// follow follows the references of a staged blob.
func (f *follower) follow(kind graph.Kind, data []byte) error {
	refs, err := graph.Refs(kind, data)
	if err != nil && !f.lenient {
		return errors.Join(ErrInvalid, err)
	}
	for _, r := range refs {
		if err := f.take(r); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) take(r graph.Ref) error {
	if !f.seen.Add(r.ID, r.Kind) {
		return nil
	}
	b, ok := f.c.staged[r.ID]
	if !ok {
		f.starts = append(f.starts, graph.Root{Kind: r.Kind, ID: r.ID})
		return nil
	}
	if !f.used[r.ID] {
		f.used[r.ID] = true
		f.needs.staged = append(f.needs.staged, b)
	}
	return f.follow(r.Kind, b.Data)
}

// skip excludes from a walk staged blobs, states of the history, and blobs that an
// earlier save of this handle named; the latter are named again, but not read again.
func (f *follower) skip(ctx context.Context, from blob.ID, r graph.Ref) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.c.staged[r.ID]; ok {
		f.back = append(f.back, r)
		return true
	}
	if f.lean(ctx, r.ID) {
		f.leaning = f.leaning || !from.IsZero()
		f.outside[r.ID] = true
		return true
	}
	if f.c.known.Has(r.ID) {
		f.known = true
		f.outside[r.ID] = true
		return true
	}
	return false
}

// lean reports whether a blob is the root of an existing save of this handle. A
// collector keeps everything it reaches until the commit, which expects the save, and
// finds the new root afterwards. The current save always exists.
func (f *follower) lean(ctx context.Context, id blob.ID) bool {
	seq, ok := f.c.roots[id]
	if !ok || seq == f.c.head.Seq {
		return ok
	}
	if _, ok := f.leans[seq]; ok {
		return true
	}
	// Ignore the error: without the row the state is read like any other.
	save, version, err := f.c.store.saveAt(ctx, f.c.id, seq)
	if err != nil || save.Root != id {
		return false
	}
	f.leans[seq] = kv.Expect{Key: keyspace.Save(f.c.id, seq), Version: version}
	return true
}

// reach reads blobs that others stored.
func (f *follower) reach(ctx context.Context) error {
	var fresh []graph.Root
	for _, r := range f.starts {
		if !f.skip(ctx, blob.ID{}, graph.Ref{Kind: r.Kind, ID: r.ID}) {
			fresh = append(fresh, r)
		}
	}
	f.starts = nil
	skip := func(from blob.ID, r graph.Ref) bool { return f.skip(ctx, from, r) }
	opts := &graph.Options{Workers: f.c.store.opts.Parallel, Skip: skip}
	err := graph.Walk(ctx, f.c.store.blobs, graph.Roots(fresh...), opts, func(n graph.Node) error {
		switch {
		case errors.Is(n.Err, blob.ErrNotFound):
			f.missing = append(f.missing, n.ID)
			return nil
		case n.Err != nil && !f.lenient:
			return errors.Join(ErrInvalid, n.Err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.outside[n.ID] = true
		if !n.Kind.Leaf() && n.Err == nil {
			f.firm = append(f.firm, n.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	back := f.back
	f.back = nil
	for _, r := range back {
		if err := f.take(r); err != nil {
			return err
		}
	}
	return nil
}

// present drops blobs of others that are not stored.
func (c *Conversation) present(ctx context.Context, n *needs) error {
	have, err := c.store.blobs.Has(ctx, n.outside...)
	if err != nil {
		return err
	}
	kept := n.outside[:0]
	for i, id := range n.outside {
		if have[i] {
			kept = append(kept, id)
		}
	}
	n.outside = kept
	return nil
}

// collectionsKey is a row that every collection changes after it has opened its
// generation and before it looks for live blobs. A save expects the version at which
// an earlier save named a blob. Then either no collection can remove the blob, or the
// collection will see this save.
var collectionsKey = keyspace.Setting("collections")

// NoteCollection changes that row. A collector calls it after it has opened a
// generation and before it looks for what is live.
func (s *Store) NoteCollection(ctx context.Context, generation uint64) error {
	return s.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: collectionsKey, Value: []byte(keyspace.Number(generation))}}})
}

// lookForCollections drops the known blobs if a collection has begun since.
func (c *Conversation) lookForCollections(ctx context.Context) error {
	row, err := c.store.rows.Get(ctx, collectionsKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if row.Version != c.knownAt { // 0 if there was none yet
		c.known, c.knownAt = new(graph.Set), row.Version
	}
	return nil
}
