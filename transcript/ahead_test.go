package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/transcript"
)

// countedGets counts reads, and has lost a blob.
type countedGets struct {
	blob.Store
	gets atomic.Int64
	lost blob.ID
}

func (s *countedGets) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	s.gets.Add(1)
	if id == s.lost {
		return nil, blob.NotFound(id)
	}
	return s.Store.Get(ctx, id)
}

// TestReadAheadLeavesNothingToRead reads some turns ahead, and then their messages.
func TestReadAheadLeavesNothingToRead(t *testing.T) {
	f := newFixture(t)
	talk := must(f.Create(t.Context(), conversation.Info{ID: "c"}))
	const turns = 8
	for n := range turns {
		turn := must(conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("prompt ", n)}, say(fmt.Sprint("reply ", n)), say("more")))
		check(t, talk.AppendTurn(t.Context(), turn))
	}
	save := must(talk.Save(t.Context(), nil))
	below := &countedGets{Store: f.blobs}
	blobs := cached.New(below, nil)
	store := conversation.New(blobs, memkv.New(memblob.New()), nil)
	at := func() *transcript.Transcript { return must(transcript.New(store, blobs).At(t.Context(), save.Root)) }
	state := at()
	check(t, state.ReadAhead(t.Context(), []int{2, 5, 0, turns + 1, -1}))
	read := below.gets.Load()
	for _, n := range []int{2, 5} {
		texts := 0
		for m, err := range state.Messages(t.Context(), &transcript.Options{TurnFrom: n - 1, TurnTo: n}) {
			check(t, err)
			if m.Turn == n {
				texts++
			}
		}
		if texts != 3 {
			t.Errorf("turn %d has %d messages", n, texts)
		}
	}
	if more := below.gets.Load() - read; more > 0 {
		t.Errorf("%d more reads", more)
	}

	// A lost turn is reported by Messages only.
	hydrated := must(f.HydrateRoot(t.Context(), save.Root, nil))
	below.lost = hydrated.Turns[6].Structure.ID()
	check(t, state.ReadAhead(t.Context(), []int{7, 8}))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := state.ReadAhead(done, []int{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a done context: %v", err)
	}
}
