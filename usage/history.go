package usage

import (
	"cmp"
	"context"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/kv"
)

const (
	maxSaves   = 64      // of a conversation that are points of time: its states are alike
	maxTrees   = 4000    // of all workspaces
	maxMoments = 250_000 // of a store, so that memory is bounded
)

// moment is a time at which something was saved.
type moment struct {
	unixMS int64
	root   blob.ID // of a state, or of a tree
	of     int32   // place in history.conversations
	tree   bool
}

// history measures what was saved in the order of time: each blob counts for the
// first moment that has it.
type history struct {
	store  *Store
	meter  *meter
	points int // at most

	moments       []moment
	conversations []Conversation
	logical       int64
	taken         []Point // kinds in the order in which they were met
}

func (h *history) measure(ctx context.Context) error {
	if err := h.saves(ctx); err != nil {
		return err
	}
	if err := h.trees(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(h.moments, func(a, b moment) int { return cmp.Compare(a.unixMS, b.unixMS) })
	points := evenly(len(h.moments), h.points)
	for i, at := range h.moments {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := h.moment(ctx, at); err != nil {
			return err
		}
		if len(points) > 0 && points[0] == i {
			points = points[1:]
			h.taken = append(h.taken, Point{UnixMS: at.unixMS, Bytes: h.bytes()})
		}
	}
	return nil
}

// moment measures one save.
func (h *history) moment(ctx context.Context, at moment) error {
	before := h.meter.sum
	var total int64
	var err error
	if at.tree {
		total, err = h.meter.tree(ctx, at.root, 0)
	} else {
		total, err = h.meter.graph(ctx, graph.Ref{Kind: graph.State, ID: at.root}, 0)
	}
	h.logical += total
	c := &h.conversations[at.of]
	c.Blobs += h.meter.sum.Blobs - before.Blobs
	c.Bytes += h.meter.sum.Bytes - before.Bytes
	return err
}

// bytes is what each kind takes so far.
func (h *history) bytes() []int64 {
	out := make([]int64, len(h.meter.kinds))
	for i, k := range h.meter.kinds {
		out[i] = k.Bytes
	}
	return out
}

// ordered gives points the order of the report's kinds.
func (h *history) ordered(order []int) []Point {
	for i, p := range h.taken {
		bytes := make([]int64, len(order))
		for to, from := range order {
			if from < len(p.Bytes) { // else the kind was not met yet
				bytes[to] = p.Bytes[from]
			}
		}
		h.taken[i].Bytes = bytes
	}
	return h.taken
}

// largest returns the conversations that added the most.
func (h *history) largest(n int) []Conversation {
	bySize(h.conversations)
	return h.conversations[:min(n, len(h.conversations))]
}

// saves lists the saves of all conversations, at most maxSaves of each, and fewer
// where there are very many conversations. It leaves unreadable saves to the method
// rest, which reports them.
func (h *history) saves(ctx context.Context) error {
	most, begin := maxSaves, 0
	for s, err := range h.store.Conversations.Saves(ctx) {
		if conversation.Damaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		if n := len(h.conversations); n == 0 || h.conversations[n-1].ID != s.Conversation {
			h.thin(begin, most)
			for len(h.moments) > maxMoments && most > 1 {
				most /= 2
				h.thinAll(most)
			}
			begin = len(h.moments)
			h.conversations = append(h.conversations, Conversation{ID: s.Conversation})
		}
		h.moments = append(h.moments, moment{unixMS: s.Time.UnixMilli(), root: s.Root, of: int32(len(h.conversations) - 1)})
	}
	h.thin(begin, most)
	return nil
}

// thin leaves at most n of the moments from begin on.
func (h *history) thin(begin, n int) {
	h.moments = append(h.moments[:begin], thinned(h.moments[begin:], n)...)
}

// thinAll leaves at most n moments of each conversation.
func (h *history) thinAll(n int) {
	kept := h.moments[:0]
	for rest := h.moments; len(rest) > 0; {
		end := slices.IndexFunc(rest, func(m moment) bool { return m.of != rest[0].of })
		if end < 0 {
			end = len(rest)
		}
		kept, rest = append(kept, thinned(rest[:end], n)...), rest[end:]
	}
	h.moments = kept
}

// trees adds the checkpoints of all workspaces.
func (h *history) trees(ctx context.Context) error {
	places := make(map[string]int32, len(h.conversations))
	for i, c := range h.conversations {
		places[c.ID] = int32(i)
	}
	var trees []moment
	for needs, err := range h.store.Checkpoints.Needs(ctx) {
		if kv.Damaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		rec := needs.Checkpoint
		if rec == nil || rec.Tree.IsZero() {
			continue
		}
		at, ok := places[rec.Conversation]
		if !ok {
			at = int32(len(h.conversations))
			places[rec.Conversation] = at
			h.conversations = append(h.conversations, Conversation{ID: rec.Conversation})
		}
		trees = append(trees, moment{unixMS: rec.Time.UnixMilli(), root: rec.Tree, of: at, tree: true})
		if len(trees) >= maxMoments {
			trees = thinned(trees, maxMoments/2)
		}
	}
	h.moments = append(h.moments, thinned(trees, maxTrees)...)
	return nil
}

// thinned picks at most n elements of a list, evenly, including the first and the
// last.
func thinned[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	out := make([]T, n)
	for i, at := range evenly(len(list), n) {
		out[i] = list[at]
	}
	return out
}

// evenly returns at most n of the places of a list of that length.
func evenly(length, n int) []int {
	n = min(n, length)
	at := make([]int, n)
	for i := range at {
		if at[i] = length - 1; n > 1 {
			at[i] = i * (length - 1) / (n - 1)
		}
	}
	return at
}
