package checkpoint

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/kv"
)

// Fork starts a conversation with the state of a checkpoint and returns its id. Files
// stay unchanged; the new conversation lists the checkpoint from its first checkpoint
// on.
func (w *Workspace) Fork(ctx context.Context, ref, conversation, author string) (string, error) {
	rec, err := w.Resolve(ctx, ref, conversation)
	if err != nil {
		return "", fmt.Errorf("fork: %w", err)
	}
	convs := w.s.opts.Conversations
	switch {
	case rec == nil:
		return "", fmt.Errorf("fork: %w: %q is the present; make a checkpoint first", ErrBadRef, ref)
	case convs == nil || rec.Conversation == "" || rec.Root.IsZero():
		return "", fmt.Errorf("fork %s: %w", rec.ID, ErrNoConversations)
	}
	var id string
	err = w.s.record(ctx, func(ctx context.Context) (err error) {
		id, err = convs.Fork(ctx, rec.Conversation, rec.Root, author, func(fork string, b *kv.Batch) error {
			return w.s.Append(ctx, &Operation{
				Kind: OpFork, Author: author, Workspace: w.id, Conversation: fork, Target: rec.ID,
				Description: fmt.Sprintf("fork of %s at %s", rec.Conversation, rec.Name()), RootAfter: rec.Root,
			}, b)
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("fork %s: %w", rec.ID, err)
	}
	return id, nil
}
