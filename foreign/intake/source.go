package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/kv"
)

// ErrNoSource reports a conversation without a raw record.
var ErrNoSource = fmt.Errorf("%w: the conversation has no raw record", conversation.ErrNotFound)

// SourceFiles returns the names of the files of the raw record of a conversation, sorted.
func SourceFiles(ctx context.Context, blobs blob.Store, rows kv.Store, conv string) ([]string, error) {
	r, err := openRaw(ctx, blobs, rows, conv)
	if err != nil {
		return nil, err
	}
	if r.root.IsZero() {
		return nil, ErrNoSource
	}
	names := map[string]bool{}
	for key := range r.state.FileStatesV2 {
		if _, name, _, ok := parseSegment(key); ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// WriteSource writes a file of the raw record as it was last copied.
func WriteSource(ctx context.Context, blobs blob.Store, rows kv.Store, conv, name string, to io.Writer) error {
	r, err := openRaw(ctx, blobs, rows, conv)
	if err != nil {
		return err
	}
	_, segments := r.segments(name)
	if len(segments) == 0 {
		return fmt.Errorf("file %q: %w", name, ErrNoSource)
	}
	for _, at := range slices.Sorted(maps.Keys(segments)) {
		data, err := blobs.Get(ctx, segments[at])
		if err != nil {
			return err
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// Session returns the session that a conversation is a copy of. The error is ErrNoSource if it
// is not a copy.
func Session(ctx context.Context, store *conversation.Store, conv string) (foreign.Session, error) {
	info, err := store.Get(ctx, conv)
	if err != nil {
		return foreign.Session{}, err
	}
	if info.Labels[LabelPath] == "" {
		return foreign.Session{}, ErrNoSource
	}
	return foreign.Session{
		Agent: info.Labels[LabelSource], ID: info.ID, Path: info.Labels[LabelPath], Workspace: info.Workspace,
		Title: info.Title, Started: info.Created, Updated: info.Updated, Parent: info.Labels[LabelParent],
	}, nil
}

// Tip returns the save at which a session's own record ends: the last one that was
// copied. After a rewind that is not the current one, and an agent whose own
// conversation was not rewound continues from it. It is the zero Save if nothing was
// copied yet, or the conversation was removed.
func Tip(ctx context.Context, store *conversation.Store, conv string) (conversation.Save, error) {
	var tip conversation.Save
	for save, err := range store.History(ctx, conv, nil) {
		if errors.Is(err, conversation.ErrNotFound) {
			return conversation.Save{}, nil
		}
		if err != nil {
			return conversation.Save{}, err
		}
		if save.Kind != conversation.KindRewind && save.Seq > tip.Seq {
			tip = save
		}
	}
	return tip, nil
}
