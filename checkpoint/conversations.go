package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
)

// Of connects the conversations of a store, for Options.Conversations. Both must use
// the same rows, so that their changes are one commit.
func Of(store *conversation.Store) Conversations { return keeper{store} }

type keeper struct{ store *conversation.Store }

func (k keeper) Current(ctx context.Context, id string) (blob.ID, error) {
	root, err := k.store.Head(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return blob.ID{}, nil // only the name is known, as with other programs' agents
	}
	return root, err
}

func (k keeper) Had(ctx context.Context, id string, root blob.ID) (bool, error) {
	_, err := k.saveOf(ctx, id, root)
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		return false, nil
	case errors.Is(err, ErrNotFound) && root == conversation.EmptyRoot():
		return true, nil // before the first save
	case errors.Is(err, ErrNotFound):
		return k.inherited(ctx, id, root)
	}
	return err == nil, err
}

func (k keeper) inherited(ctx context.Context, id string, root blob.ID) (bool, error) {
	for save, err := range k.store.Inherited(ctx, id) {
		if err != nil || save.Root == root {
			return err == nil, err
		}
	}
	return false, nil
}

func (k keeper) Origin(ctx context.Context, id string) (Origin, error) {
	info, err := k.store.Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) || err == nil && info.ForkedFrom == "" {
		return Origin{}, nil
	}
	if err != nil {
		return Origin{}, err
	}
	// A fork begins with the state of its origin. Retention may have removed that save.
	save, err := k.store.SaveAt(ctx, id, 1)
	if errors.Is(err, conversation.ErrNotFound) || err == nil && save.Kind != conversation.KindFork {
		save, err = k.store.SaveAt(ctx, info.ForkedFrom, info.ForkedFromSave)
	}
	if errors.Is(err, conversation.ErrNotFound) {
		return Origin{}, nil
	}
	return Origin{Conversation: info.ForkedFrom, Turns: save.Turns}, err
}

func (k keeper) Continued(ctx context.Context, id string, roots ...blob.ID) (blob.ID, error) {
	next := uint64(0) // of the saves that lead to the current one; 0 before the first
	for save, err := range k.store.History(ctx, id, &conversation.HistoryOptions{Newest: true}) {
		if err != nil {
			return blob.ID{}, err
		}
		if next != 0 && save.Seq != next {
			continue
		}
		if next = save.Parent; slices.Contains(roots, save.Root) {
			return save.Root, nil
		}
		if next == 0 {
			break
		}
	}
	return blob.ID{}, nil
}

func (k keeper) Rewind(ctx context.Context, id string, from, to blob.ID, author string, extend func(*kv.Batch) error) error {
	save, err := k.saveOf(ctx, id, to)
	elsewhere := errors.Is(err, ErrNotFound)
	if err != nil && !elsewhere {
		return err
	}
	c, err := k.store.Open(ctx, id)
	if err != nil {
		return fmt.Errorf("open conversation %q: %w", id, err)
	}
	// It is asked after it was opened, so that the commit fails if it goes on from here.
	if now, err := k.Current(ctx, id); err != nil {
		return err
	} else if !from.IsZero() && now != from {
		return fmt.Errorf("%w: conversation %q went on meanwhile", ErrStalePlan, id)
	}
	opts := &conversation.RewindOptions{
		Author: author,
		Extend: func(_ conversation.Save, b *kv.Batch) error { return extend(b) },
	}
	switch {
	case !elsewhere:
		_, err = c.Rewind(ctx, save.Seq, opts)
	case to == conversation.EmptyRoot(): // before the first save
		_, err = c.StartOver(ctx, opts)
	default:
		_, err = c.RewindInherited(ctx, to, opts)
	}
	return err
}

func (k keeper) Fork(ctx context.Context, id string, root blob.ID, author string, extend func(fork string, b *kv.Batch) error) (string, error) {
	save, err := k.saveOf(ctx, id, root)
	if err != nil {
		return "", err
	}
	c, err := k.store.ForkWith(ctx, id, save.Seq, conversation.Info{}, func(fork conversation.Info, b *kv.Batch) error {
		return extend(fork.ID, b)
	})
	if err != nil {
		return "", err
	}
	return c.ID(), nil
}

// saveOf returns the latest save of a conversation that has a root.
func (k keeper) saveOf(ctx context.Context, id string, root blob.ID) (conversation.Save, error) {
	for save, err := range k.store.History(ctx, id, &conversation.HistoryOptions{Newest: true}) {
		if err != nil {
			return conversation.Save{}, err
		}
		if save.Root == root {
			return save, nil
		}
	}
	return conversation.Save{}, fmt.Errorf("%w: conversation %q never was at %s", ErrNotFound, id, root.Short())
}
