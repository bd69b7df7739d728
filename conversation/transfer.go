package conversation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/kv"
)

// Have reports which blobs the other side of a transfer has.
type Have func(ctx context.Context, ids []blob.ID) ([]bool, error)

// haveBatch is how many ids are sent in one query.
const haveBatch = 256

// Export returns the bytes of a root and the reachable blobs that the other side lacks.
// have may be nil if the other side has none. The root's own blob comes last, so that an
// interrupted transfer leaves nothing that looks complete. A blob that is missing here is
// an error.
func (s *Store) Export(ctx context.Context, root blob.ID, have Have) ([]byte, iter.Seq2[blob.Blob, error], error) {
	raw, err := s.loadState(ctx, "", root)
	if err != nil {
		return nil, nil, err
	}
	ids, err := s.reachable(ctx, root)
	if err != nil {
		return nil, nil, fmt.Errorf("export %s: %w", root.Short(), err)
	}
	return raw, func(yield func(blob.Blob, error) bool) {
		for batch := range slices.Chunk(ids, haveBatch) {
			batch, err := lacking(ctx, batch, have)
			if err != nil {
				yield(blob.Blob{}, fmt.Errorf("export %s: %w", root.Short(), err))
				return
			}
			for _, id := range batch {
				data, err := s.blobs.Get(ctx, id)
				if err != nil {
					yield(blob.Blob{}, fmt.Errorf("export %s: %w", root.Short(), err))
					return
				}
				if !yield(blob.Blob{ID: id, Data: data}, nil) {
					return
				}
			}
		}
	}, nil
}

// reachable returns the blobs that a root reaches, each once, the root last.
func (s *Store) reachable(ctx context.Context, root blob.ID) ([]blob.ID, error) {
	var ids []blob.ID
	listed := make(map[blob.ID]bool)
	err := graph.Walk(ctx, s.blobs, graph.Roots(graph.Root{Kind: graph.State, ID: root}), nested(), func(n graph.Node) error {
		if n.Err != nil {
			return fmt.Errorf("%s %s: %w", n.Field, n.ID.Short(), n.Err)
		}
		if !listed[n.ID] {
			listed[n.ID] = true
			ids = append(ids, n.ID)
		}
		return nil
	})
	slices.Reverse(ids)
	return ids, err
}

// nested makes a walk reject too deeply nested subagents.
func nested() *graph.Options { return &graph.Options{Nesting: new(graph.Nesting)} }

func lacking(ctx context.Context, ids []blob.ID, have Have) ([]blob.ID, error) {
	if have == nil || len(ids) == 0 {
		return ids, nil
	}
	there, err := have(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("ask what the other side has: %w", err)
	}
	if len(there) != len(ids) {
		return nil, invalid("asked for %d blobs, got %d answers", len(ids), len(there))
	}
	var out []blob.ID
	for i, id := range ids {
		if !there[i] {
			out = append(out, id)
		}
	}
	return out, nil
}

// Import stores blobs of another store and checks that the root is then complete. It
// fails with a *kv.MissingBlobsError if the root is not complete, and with
// blob.ErrMismatch if a blob does not match its id. SetRoot and Save make the root part
// of a conversation.
func (s *Store) Import(ctx context.Context, root blob.ID, blobs iter.Seq2[blob.Blob, error]) error {
	for b, err := range blobs {
		if err != nil {
			return fmt.Errorf("import %s: %w", root.Short(), err)
		}
		if got := blob.Sum(b.Data); got != b.ID {
			return fmt.Errorf("import %s: %w", root.Short(), &blob.MismatchError{Want: b.ID, Got: got})
		}
		if err := s.blobs.Put(ctx, blob.Blob{ID: b.ID, Data: b.Data}); err != nil {
			return fmt.Errorf("import %s: %w", root.Short(), err)
		}
	}
	missing, err := s.missing(ctx, root)
	if err == nil && len(missing) > 0 {
		err = &kv.MissingBlobsError{IDs: missing}
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", root.Short(), err)
	}
	return nil
}

// missing returns the reachable blobs of a root that the store does not have.
func (s *Store) missing(ctx context.Context, root blob.ID) ([]blob.ID, error) {
	var leaves, missing []blob.ID
	err := graph.Walk(ctx, s.blobs, graph.Roots(graph.Root{Kind: graph.State, ID: root}), nested(), func(n graph.Node) error {
		switch {
		case errors.Is(n.Err, blob.ErrNotFound):
			missing = append(missing, n.ID)
		case n.Err != nil:
			return n.Err
		case n.Kind.Leaf():
			leaves = append(leaves, n.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	have, err := s.blobs.Has(ctx, leaves...)
	if err != nil {
		return nil, err
	}
	for i, id := range leaves {
		if !have[i] {
			missing = append(missing, id)
		}
	}
	return missing, nil
}
