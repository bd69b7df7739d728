package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/kv"
)

// ByConversation returns the size of what each conversation reaches with its saves
// and checkpoints, the largest first. Content that several conversations share counts
// for each of them. A damaged conversation counts as far as it can be read, and
// damaged lists what could not be read; one whose record cannot be read is only in
// damaged.
func (s *Store) ByConversation(ctx context.Context) (all []Conversation, damaged []conversation.Unreadable, err error) {
	all, damaged, err = s.byConversation(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("measure conversations: %w", err)
	}
	bySize(all)
	return all, damaged, nil
}

func (s *Store) byConversation(ctx context.Context) (all []Conversation, damaged []conversation.Unreadable, err error) {
	book, _, err := s.inventory(ctx) // Measure reports damage of blobs without an owner
	if err != nil {
		return nil, nil, err
	}
	packed := make(map[string]Count)
	if s.Archived != nil {
		for a, err := range s.Archived(ctx) {
			if err != nil {
				return nil, nil, err
			}
			packed[a.ID] = a.Count
		}
	}
	opts := &conversation.ListOptions{Limit: 500}
	for {
		page, err := cmp.Or(s.Names, s.Conversations).List(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		damaged = append(damaged, page.Damaged...)
		for _, info := range page.Conversations {
			c := Conversation{ID: info.ID, Title: info.Title}
			if c.Count, c.Archived = packed[info.ID]; !c.Archived {
				var damage error
				if c.Count, damage, err = s.reach(ctx, book, info.ID); err != nil {
					return nil, nil, err
				}
				if damage != nil {
					damaged = append(damaged, conversation.Unreadable{ID: info.ID, Err: damage})
				}
			}
			all = append(all, c)
		}
		if page.Next == "" {
			return all, damaged, nil
		}
		opts.Cursor = page.Next
	}
}

// reach measures one conversation.
func (s *Store) reach(ctx context.Context, book *ledger, id string) (sum Count, damage, err error) {
	book.begin()
	m := newMeter(s.Blobs, book, &Options{})
	if err := m.walk(ctx, s.roots(ctx, m, id)); err != nil {
		return Count{}, nil, err
	}
	return m.sum, errors.Join(m.damaged...), nil
}

// roots counts the trees of a conversation, and yields its states.
func (s *Store) roots(ctx context.Context, m *meter, id string) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for save, err := range s.Conversations.History(ctx, id, &conversation.HistoryOptions{Newest: true}) {
			if errors.Is(err, conversation.ErrNotFound) {
				return // removed, or archived, since it was listed
			}
			if !yield(graph.Root{Kind: graph.State, ID: save.Root}, err) {
				return
			}
		}
		for rec, err := range s.Checkpoints.ListConversation(ctx, id) {
			var unreadable *checkpoint.UnreadableError
			if errors.As(err, &unreadable) || kv.Damaged(err) {
				m.damage(err)
				continue
			}
			if err == nil {
				_, err = m.tree(ctx, rec.Tree, 0)
			}
			if err != nil {
				yield(graph.Root{}, err)
				return
			}
			if !yield(graph.Root{Kind: graph.State, ID: rec.Root}, nil) {
				return
			}
		}
	}
}
