package checkpoint

import (
	"context"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Roots gives the blobs that checkpoints, journals and operations need: states
// of conversations as such, everything else blob by blob. It is a
// conversation.Roots, for the collector. A row or tree that cannot be read is an
// error, and those after it follow.
func (s *Service) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		r := rooter{s: s, ctx: ctx, yield: yield, seen: map[blob.ID]struct{}{}}
		_ = r.rows(keyspace.Checkpoints(), r.checkpoint) &&
			r.rows(keyspace.Journals(), r.journal) &&
			r.rows(keyspace.Operations(), r.operation)
	}
}

type rooter struct {
	s     *Service
	ctx   context.Context
	yield func(graph.Root, error) bool
	seen  map[blob.ID]struct{}
}

// rows calls fn for every row; it returns false when the caller wants no more.
func (r *rooter) rows(rng kv.Range, fn func(kv.Row) bool) bool {
	for row, err := range kv.Each(r.ctx, r.s.rows, rng, false) {
		if err != nil {
			if !r.yield(graph.Root{}, fmt.Errorf("read roots of checkpoints: %w", err)) || row.Key == "" {
				return false
			}
			continue
		}
		if !fn(row) {
			return false
		}
	}
	return true
}

// give yields a blob once; more reports whether the caller wants more.
func (r *rooter) give(kind graph.Kind, id blob.ID) (more bool) {
	if _, ok := r.seen[id]; ok || id.IsZero() {
		return true
	}
	r.seen[id] = struct{}{}
	return r.yield(graph.Root{Kind: kind, ID: id}, nil)
}

func (r *rooter) checkpoint(row kv.Row) bool {
	rec, err := readRecord(row)
	if err != nil {
		return r.yield(graph.Root{}, err)
	}
	return r.give(graph.State, rec.Root) && r.give(graph.Bytes, rec.notCaptured) && r.tree(rec.Tree)
}

// tree gives the blobs of a tree, the shared ones once over all trees.
func (r *rooter) tree(tree blob.ID) bool {
	more := true
	err := workspace.Refs(r.ctx, r.s.blobs, tree, func(id blob.ID) bool {
		if _, ok := r.seen[id]; ok || !more {
			return false
		}
		more = r.give(graph.Bytes, id)
		return more
	})
	if err != nil && more {
		return r.yield(graph.Root{}, fmt.Errorf("read tree %s: %w", tree, err))
	}
	return more
}

func (r *rooter) journal(row kv.Row) bool {
	rec, err := readJournal(row)
	if err != nil {
		return r.yield(graph.Root{}, err)
	}
	steps, err := optionalID(rec.Steps)
	if err != nil {
		return r.yield(graph.Root{}, err)
	}
	return r.give(graph.Bytes, steps)
}

func (r *rooter) operation(row kv.Row) bool {
	op, err := readOperation(row)
	if err != nil {
		return r.yield(graph.Root{}, err)
	}
	return r.give(graph.State, op.RootBefore) && r.give(graph.State, op.RootAfter) && r.give(graph.Bytes, op.listed)
}
