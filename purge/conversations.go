package purge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/thread"
)

// ErrEntangled says that the bytes cannot be masked in a blob without changing its
// structure.
var ErrEntangled = fault.New(fault.Invalid, "the bytes are a part of the structure around them")

// rewriter makes replacements for the blobs that hold the bytes, and for all blobs
// that name them, from the leaves up.
type rewriter struct {
	find  *finder
	store bool // or only look
	known map[graph.Root]blob.ID
	kids  map[blob.ID][]blob.ID // of a changed blob those that changed
	swaps *swaps
	last  blob.ID // the last state that was stored: the next one is like it
}

func newRewriter(f *finder, store bool) *rewriter {
	return &rewriter{find: f, store: store, known: make(map[graph.Root]blob.ID), kids: make(map[blob.ID][]blob.ID), swaps: newSwaps()}
}

// rewrite returns the replacement of a blob, or the blob itself if it may stay.
func (r *rewriter) rewrite(ctx context.Context, at graph.Root) (blob.ID, error) {
	if id, ok := r.known[at]; ok {
		return id, nil
	}
	id, err := r.fresh(ctx, at)
	if err != nil {
		if err := r.find.pass(at.ID, err); err != nil {
			return blob.ID{}, err
		}
		id = at.ID
	}
	r.known[at] = id
	if id != at.ID {
		r.swaps.add(at.ID, id)
	}
	return id, nil
}

func (r *rewriter) fresh(ctx context.Context, at graph.Root) (blob.ID, error) {
	l, err := r.find.level(ctx, at.ID)
	named := r.find.exact[at.ID]
	if err != nil || at.Kind.Leaf() && l == clean && !named {
		return at.ID, err
	}
	data, err := r.find.s.stores.Blobs.Get(ctx, at.ID)
	if err != nil {
		return at.ID, err
	}
	if named {
		return r.put(ctx, at, bytes.Repeat([]byte("*"), len(data)))
	}
	refs, _ := graph.Refs(at.Kind, data) // what is malformed refers to nothing more
	changed := newSwaps()
	for _, ref := range refs {
		now, err := r.rewrite(ctx, graph.Root{Kind: ref.Kind, ID: ref.ID})
		if err != nil {
			return at.ID, err
		}
		if now != ref.ID && changed.by[ref.ID].IsZero() {
			changed.add(ref.ID, now)
			r.kids[at.ID] = append(r.kids[at.ID], ref.ID)
		}
	}
	out, _ := changed.in(data)
	if out == nil {
		out = data
	}
	masked := r.find.contents.mask(out)
	switch {
	case masked != nil:
		out = masked
	case len(changed.by) == 0:
		return at.ID, nil
	}
	if after, err := graph.Refs(at.Kind, out); len(after) != len(refs) {
		return at.ID, fmt.Errorf("%w: %s %s: %w", ErrEntangled, at.Kind, at.ID, cmp.Or(err, graph.ErrMalformed))
	}
	return r.put(ctx, at, out)
}

// put stores the new form of a blob.
func (r *rewriter) put(ctx context.Context, at graph.Root, data []byte) (blob.ID, error) {
	b := blob.New(data)
	if !r.store {
		return b.ID, nil
	}
	if mirror := r.find.s.stores.Mirror; mirror != nil {
		local, err := mirror.StaysLocal(ctx, at.ID)
		if err != nil {
			return at.ID, err
		}
		b.LocalOnly = local
	}
	if at.Kind == graph.State {
		b.Like, r.last = r.last, b.ID
	}
	return b.ID, r.find.s.stores.Blobs.Put(ctx, b)
}

// roots rewrites what all rows name except trees, and returns the changed roots of each
// conversation.
func (r *rewriter) roots(ctx context.Context) (map[string][]blob.ID, error) {
	s := r.find.s.stores
	talks := make(map[string][]blob.ID)
	one := func(conversation string, root graph.Root) error {
		if root.ID.IsZero() {
			return nil
		}
		now, err := r.rewrite(ctx, root)
		if err == nil && now != root.ID && conversation != "" && !slices.Contains(talks[conversation], root.ID) {
			talks[conversation] = append(talks[conversation], root.ID)
		}
		return err
	}
	unread := func(err error) error {
		if ctx.Err() == nil && (conversation.Damaged(err) || errors.Is(err, blob.ErrNotFound)) {
			r.find.unread = append(r.find.unread, err)
			return nil
		}
		return err
	}
	ofConversations := func(rows kv.Store) error {
		for row, err := range conversation.New(s.Blobs, rows, nil).RootRows(ctx) {
			if err == nil {
				err = one(row.Conversation, graph.Root{Kind: graph.State, ID: row.Root})
			} else {
				err = unread(err)
			}
			if err != nil {
				return err
			}
		}
		return each(ctx, jsoncheckpoint.NewStore(rows).Roots, func(root graph.Root) error { return one("", root) }, unread)
	}
	if err := ofConversations(s.Rows); err != nil {
		return nil, err
	}
	if err := r.find.archives(ctx, ofConversations); err != nil {
		return nil, err
	}
	for needs, err := range s.Checkpoints.Needs(ctx) {
		if err != nil {
			continue // the look at trees noted it
		}
		of := ""
		if needs.Checkpoint != nil {
			of = needs.Checkpoint.Conversation
		}
		for _, id := range needs.States {
			if err := one(of, graph.Root{Kind: graph.State, ID: id}); err != nil {
				return nil, err
			}
		}
	}
	for _, roots := range []conversation.Roots{cloudagent.New(s.Blobs, s.Rows, nil).Roots, stream.New(s.Blobs, s.Rows, nil).Roots, thread.New(s.Blobs, s.Rows, nil).Roots, document.Open(s.Blobs, s.Rows, nil).Roots} {
		if err := each(ctx, roots, func(root graph.Root) error { return one("", root) }, unread); err != nil {
			return nil, err
		}
	}
	return talks, nil
}

// each calls fn for every root, and failed for those that cannot be read.
func each(ctx context.Context, roots conversation.Roots, fn func(graph.Root) error, failed func(error) error) error {
	for root, err := range roots(ctx) {
		if err == nil {
			err = fn(root)
		} else {
			err = failed(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// places counts the blobs below some roots that hold the bytes.
func (r *rewriter) places(roots []blob.ID) int {
	seen := make(map[blob.ID]bool)
	n := 0
	var visit func(blob.ID)
	visit = func(id blob.ID) {
		if seen[id] {
			return
		}
		seen[id] = true
		if r.find.levels[id] != clean {
			n++
		}
		for _, kid := range r.kids[id] {
			visit(kid)
		}
	}
	for _, root := range roots {
		visit(root)
	}
	return n
}

// lookAtConversations finds conversations and rows.
func (p *Plan) lookAtConversations(ctx context.Context) error {
	r := newRewriter(p.find, false)
	found, err := r.roots(ctx)
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	for id, roots := range found {
		c := Conversation{ID: id, Places: r.places(roots)}
		// One whose row cannot be read is among the unread rows.
		if info, err := p.find.s.stores.Conversations.Get(ctx, id); err == nil && !p.find.contents.in([]byte(info.Title)) {
			c.Title = info.Title
		}
		p.Conversations = append(p.Conversations, c)
	}
	slices.SortFunc(p.Conversations, func(a, b Conversation) int { return cmp.Compare(a.ID, b.ID) })
	return p.find.eachRow(ctx, func(at rowAt) error {
		if p.find.contents.in(at.plain) || p.find.contents.in([]byte(at.Key)) {
			p.Rows = append(p.Rows, p.find.shown(at.Key))
		}
		return nil
	})
}
