package cloudagent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
)

// worn is a cache in which one blob is damaged until it is stored again, if that repairs
// it at all.
type worn struct {
	blob.Store
	id       blob.ID
	repairs  bool
	repaired bool
}

func (w *worn) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == w.id && !w.repaired {
		return nil, fmt.Errorf("blob %s: %w", id, blob.ErrCorrupt)
	}
	return w.Store.Get(ctx, id)
}

func (w *worn) Put(ctx context.Context, blobs ...blob.Blob) error {
	for _, b := range blobs {
		w.repaired = w.repaired || w.repairs && b.ID == w.id
	}
	return w.Store.Put(ctx, blobs...)
}

// A blob that is damaged in the follower's own cache is fetched again. A cache that gives
// back damage all the same ends the follower, and does not keep it busy for ever.
func TestADamagedCacheIsRepairedFromThePeer(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	state, blobs := stateOf(2)
	saved := must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
	if err := s.Archive(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for _, repairs := range []bool{true, false} {
		cache := &worn{Store: memblob.New(), id: blob.ID(state.ConversationState.Turns[1]), repairs: repairs}
		for _, b := range blobs { // the cache has everything; one blob cannot be read
			if err := cache.Store.Put(ctx, blob.New(b.Value)); err != nil {
				t.Fatal(err)
			}
		}
		opts := followOptions(s, "a")
		opts.Cache = cache
		opts.Dial = func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			return pull(ctx, s, "a", cloudagent.StreamOptions{After: after, MaxBlobsAfterPrefetch: -1}, nil), nil
		}
		var seen bool
		var failed error
		for e, err := range cloudagent.Follow(ctx, opts) {
			seen, failed = seen || e.StateID == saved.State && len(e.Missing) == 0, err
		}
		if repairs && (failed != nil || !seen || !cache.repaired) {
			t.Errorf("state delivered %t, blob repaired %t, error %v", seen, cache.repaired, failed)
		}
		if !repairs && !errors.Is(failed, blob.ErrCorrupt) {
			t.Errorf("a cache that stays damaged: %v", failed)
		}
	}
}
