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
	outside []blob.ID   // stored before by others, such as a client's images
	// expect is what must still hold for the rest, which was not read, to be safe
	// from a collector.
	expect []kv.Expect
	// firm are those of outside that the next saves need not read again, as long
	// as the collections row is at the version that expect has.
	firm []blob.ID
}

// refs returns all of them and the root, for the commit.
func (n needs) refs(root blob.ID) []blob.ID {
	refs := append([]blob.ID{root}, n.outside...)
	for _, b := range n.staged {
		refs = append(refs, b.ID)
	}
	return refs
}

// closure finds what the next root needs, by following what changed. A commit
// that names it all cannot end with a state that a collector has holes in. Forms
// that were staged and replaced again are not part of it. Only what is new is
// read.
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
	// What others stored may name something that is staged, and the other way
	// round.
	for len(f.starts) > 0 {
		if err := f.reach(ctx); err != nil {
			return needs{}, err
		}
	}
	if len(f.missing) > 0 && !lenient {
		return needs{}, &kv.MissingBlobsError{IDs: f.missing}
	}
	f.needs.outside = slices.Collect(maps.Keys(f.outside))
	f.settle()
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
	starts  []graph.Root     // blobs of others that were not read yet
	missing []blob.ID
	firm    []blob.ID // blobs of others that were read

	mu      sync.Mutex // guards what follows, since workers call skip
	outside map[blob.ID]bool
	back    []graph.Ref          // staged blobs that blobs of others name
	known   bool                 // something was skipped because an earlier save named it
	leaning bool                 // a blob of others reaches a state of the history, which was skipped
	leans   map[uint64]kv.Expect // saves whose states were skipped
}

// settle says on what the needs lean. A blob whose reach ends in the history is
// not firm: the history may go without a collection that anybody notices.
func (f *follower) settle() {
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

// follow takes up what the bytes of a staged blob refer to.
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

// skip keeps a walk from blobs that are staged, from states of the history, and
// from blobs that an earlier save of this handle named; the latter are named
// again, but not read again.
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

// lean reports whether a blob is the root of a save of this handle that is still
// there. A collector keeps what it reaches until the commit, which expects it to
// be there, and finds the new root after. The current save is always there.
func (f *follower) lean(ctx context.Context, id blob.ID) bool {
	seq, ok := f.c.roots[id]
	if !ok || seq == f.c.head.Seq {
		return ok
	}
	if _, ok := f.leans[seq]; ok {
		return true
	}
	// Whatever the error is: without the row the state is read like any other.
	save, version, err := f.c.store.saveAt(ctx, f.c.id, seq)
	if err != nil || save.Root != id {
		return false
	}
	f.leans[seq] = kv.Expect{Key: keyspace.Save(f.c.id, seq), Version: version}
	return true
}

// reach reads what others stored.
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

// present leaves out blobs of others that are not stored.
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
// generation and before it looks for what is live. A save that expects the
// version at which an earlier one named a blob knows that either no collection
// can take the blob, or that the collection will see this save.
var collectionsKey = keyspace.Setting("collections")

// lookForCollections forgets what earlier saves made safe if a collection began
// since.
func (c *Conversation) lookForCollections(ctx context.Context) error {
	row, err := c.store.rows.Get(ctx, collectionsKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if row.Version != c.knownAt { // 0 where there was none yet
		c.known, c.knownAt = new(graph.Set), row.Version
	}
	return nil
}
