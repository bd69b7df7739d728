package checkpoint

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Needs is what one row of this package keeps alive: the row of a checkpoint, of the
// journal of an interrupted rewind, or of an operation.
type Needs struct {
	// Checkpoint is the record, nil for a journal and an operation.
	Checkpoint *Record
	// Tree is the directory of a checkpoint, States are roots of conversations, and
	// Others are single blobs. None of them is zero, except that Tree may be.
	Tree           blob.ID
	States, Others []blob.ID
}

// Needs yields what each row keeps alive, without looking into trees. For a row that
// cannot be read it yields an error and continues.
func (s *Service) Needs(ctx context.Context) iter.Seq2[Needs, error] {
	return func(yield func(Needs, error) bool) {
		for _, table := range []struct {
			rows   kv.Range
			decode func(kv.Row) (Needs, error)
		}{{keyspace.Checkpoints(), neededByCheckpoint}, {keyspace.Journals(), neededByJournal}, {keyspace.Operations(), neededByOperation}} {
			for row, err := range kv.Each(ctx, s.rows, table.rows, false) {
				if row.Key == "" {
					yield(Needs{}, fmt.Errorf("read roots of checkpoints: %w", err))
					return
				}
				var needs Needs
				if err == nil {
					needs, err = table.decode(row)
				} else {
					err = fmt.Errorf("read roots of checkpoints: %w", err)
				}
				if !yield(needs, err) {
					return
				}
			}
		}
	}
}

func neededByCheckpoint(row kv.Row) (Needs, error) {
	rec, err := readRecord(row)
	if err != nil {
		return Needs{}, err
	}
	return Needs{Checkpoint: rec, Tree: rec.Tree, States: known(rec.Root), Others: known(rec.notCaptured)}, nil
}

func neededByJournal(row kv.Row) (Needs, error) {
	rec, err := readJournal(row)
	if err != nil {
		return Needs{}, err
	}
	steps, err := optionalID(rec.Steps)
	return Needs{Others: known(steps)}, err
}

func neededByOperation(row kv.Row) (Needs, error) {
	op, err := readOperation(row)
	if err != nil {
		return Needs{}, err
	}
	return Needs{States: known(op.RootBefore, op.RootAfter), Others: known(op.listed)}, nil
}

// known leaves out ids that are zero.
func known(ids ...blob.ID) []blob.ID { return slices.DeleteFunc(ids, blob.ID.IsZero) }

// Roots yields the blobs that checkpoints, journals and operations need: states of
// conversations as roots, everything else blob by blob. It is a conversation.Roots,
// for the collector. For an unreadable row or tree it yields an error and continues.
func (s *Service) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		r := rooter{s: s, ctx: ctx, yield: yield, seen: map[blob.ID]struct{}{}}
		for needs, err := range s.Needs(ctx) {
			if err != nil && !yield(graph.Root{}, err) || err == nil && !r.needs(needs) {
				return
			}
		}
	}
}

type rooter struct {
	s     *Service
	ctx   context.Context
	yield func(graph.Root, error) bool
	seen  map[blob.ID]struct{}
}

// needs yields everything that one row needs; more reports whether the caller wants
// more.
func (r *rooter) needs(n Needs) (more bool) {
	for _, id := range n.States {
		if !r.give(graph.State, id) {
			return false
		}
	}
	for _, id := range n.Others {
		if !r.give(graph.Bytes, id) {
			return false
		}
	}
	return r.tree(n.Tree)
}

// give yields a blob once; more reports whether the caller wants more.
func (r *rooter) give(kind graph.Kind, id blob.ID) (more bool) {
	if _, ok := r.seen[id]; ok || id.IsZero() {
		return true
	}
	r.seen[id] = struct{}{}
	return r.yield(graph.Root{Kind: kind, ID: id}, nil)
}

// tree yields the blobs of a tree; blobs shared by several trees are yielded once.
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
