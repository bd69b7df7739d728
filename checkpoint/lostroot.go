package checkpoint

import (
	"context"
	"errors"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
)

// dropLostRoot removes the state from a record if the store lacks it, and returns the
// loss.
func dropLostRoot(rec *Record, err error) error {
	var missing *kv.MissingBlobsError
	if rec.Root.IsZero() || !errors.As(err, &missing) || !slices.Contains(missing.IDs, rec.Root) {
		return nil
	}
	loss := &conversation.HydrationError{Conversation: rec.Conversation, Source: "pointer", Err: blob.NotFound(rec.Root)}
	rec.Root = blob.ID{}
	return loss
}

// damagedRoot returns the loss if the state that a record names is stored and damaged.
func (w *Workspace) damagedRoot(ctx context.Context, rec *Record) error {
	if rec.Root.IsZero() {
		return nil
	}
	if _, err := w.s.blobs.Get(ctx, rec.Root); errors.Is(err, blob.ErrCorrupt) {
		return &conversation.HydrationError{Conversation: rec.Conversation, Source: "pointer", Err: err}
	}
	return nil // other failures are met by those who read the state
}
