package conversation

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// maxOrigins bounds how many forks of forks Inherited follows.
const maxOrigins = 100

// Inherited returns the saves that a conversation shares with the one it was forked from:
// those that lead to the fork, latest first, and then those that this one was forked from.
// It ends where a conversation or a save was removed.
func (s *Store) Inherited(ctx context.Context, id string) iter.Seq2[ListedSave, error] {
	return func(yield func(ListedSave, error) bool) {
		latest := blob.ID{} // of the states of an origin, zero for the one at the fork
		for range maxOrigins {
			rec, _, err := s.record(ctx, id)
			if err != nil {
				yield(ListedSave{}, err)
				return
			}
			if rec.ForkedFrom == "" {
				return
			}
			id = rec.ForkedFrom
			next, first := rec.ForkedFromSave, Save{}
			for save, err := range s.History(ctx, id, &HistoryOptions{To: next, Newest: true}) {
				if errors.Is(err, ErrNotFound) {
					return
				}
				if err != nil {
					yield(ListedSave{}, err)
					return
				}
				if save.Seq != next {
					continue
				}
				if latest.IsZero() || save.Root == latest {
					latest = blob.ID{}
					if !yield(ListedSave{id, save}, nil) {
						return
					}
				}
				if next, first = save.Parent, save; next == 0 {
					break
				}
			}
			switch {
			case first.Seq == 0 || next != 0:
				return // saves were removed
			case first.Kind == KindRewind && first.Turns == 0:
				return // it was started over
			case first.Kind == KindRewind && latest.IsZero():
				latest = first.Root // see RewindInherited
			}
		}
	}
}

// RewindInherited is Rewind to a state that the conversation shares with the one it was
// forked from. It fails with ErrNotFound if there is none with that root.
func (c *Conversation) RewindInherited(ctx context.Context, root blob.ID, opts *RewindOptions) (Save, error) {
	if opts == nil {
		opts = &RewindOptions{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.rewindLocked(ctx, opts, func() (Save, []kv.Expect, error) { return c.inheritedTarget(ctx, root) })
	if err != nil {
		return Save{}, fmt.Errorf("rewind conversation %s to a state of its origin: %w", c.id, err)
	}
	return s, nil
}

func (c *Conversation) inheritedTarget(ctx context.Context, root blob.ID) (Save, []kv.Expect, error) {
	for save, err := range c.store.Inherited(ctx, c.id) {
		if err != nil {
			return Save{}, nil, err
		}
		if save.Root != root {
			continue
		}
		_, version, err := c.store.saveAt(ctx, save.Conversation, save.Seq)
		if err != nil {
			return Save{}, nil, err
		}
		if _, err := c.store.loadState(ctx, c.id, root); err != nil {
			return Save{}, nil, err // do not rewind to an unreadable state
		}
		// It continues no save of this conversation. While the origin's save exists, a
		// collector keeps everything it reaches.
		target := Save{Root: root, MessageID: save.MessageID, Turns: save.Turns, Turn: save.Turn.forFork()}
		return target, []kv.Expect{{Key: keyspace.Save(save.Conversation, save.Seq), Version: version}}, nil
	}
	return Save{}, nil, fmt.Errorf("state %s: %w", root.Short(), ErrNotFound)
}
