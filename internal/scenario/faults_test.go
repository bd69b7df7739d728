package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/transfer"
	"github.com/stet-dev/stet/upkeep"
)

func text(s string) *agentv1.InteractionUpdate {
	return &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: s}}}
}

// lost reports whether a call may have failed because of its connection.
func lost(err error) bool {
	code := connect.CodeOf(err)
	return errors.Is(err, client.ErrUnreachable) || errors.Is(err, kv.ErrBusy) || code == connect.CodeUnavailable || code == connect.CodeUnknown
}

// insist repeats a call until its connection holds for as long as it takes.
func insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if err == nil || !lost(err) || ctx.Err() != nil {
			return err
		}
	}
}

// 200 streams follow 20 agents, readers and writers over connections that are cut,
// delayed and throttled all the time: nothing is lost, repeated or reordered.
func TestStreamsUnderNetworkFaults(t *testing.T) {
	const agents, followers = 20, 10
	events := testenv.Scale(50_000, 2_000_000) / (agents * followers)
	_, address := start(t)
	// The readers of an agent share a connection, which is cut after at most five times
	// this: less than they need for the smallest number of events.
	p := newProxy(t, address, int64(testenv.Sizes(2<<10, 8<<10, 8<<10)))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var work sync.WaitGroup
	for n := range agents {
		id := fmt.Sprint("agent-", n)
		if _, err := dial(t, address).Agents().Create(ctx, id, "", ""); err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			if err := writeNumbers(ctx, dial(t, p.address).Agents(), id, uint64(n), events); err != nil {
				t.Errorf("%s: %v", id, err)
				cancel()
			}
		})
		readers := dial(t, p.address).Agents()
		for range followers {
			work.Go(func() {
				if err := followNumbers(ctx, readers, id, events); err != nil {
					t.Errorf("%s: %v", id, err)
					cancel()
				}
			})
		}
	}
	work.Wait()
	t.Logf("%d events on %d streams, %d cuts", events*agents*followers, agents*followers, p.cuts.Load())
	if p.cuts.Load() < int64(testenv.Scale(agents, agents)) {
		t.Errorf("only %d connections were cut", p.cuts.Load())
	}
}

// writeNumbers appends the numbers from 0, in groups, each once although answers
// get lost.
func writeNumbers(ctx context.Context, agents *client.Agents, id string, seed uint64, events int) error {
	rng := rand.New(rand.NewPCG(1, seed))
	for next := 0; next < events; {
		group := min(1+rng.IntN(16), events-next)
		updates := make([]*agentv1.InteractionUpdate, group)
		for i := range updates {
			updates[i] = text(strconv.Itoa(next + i))
		}
		err := insist(ctx, func() error {
			_, err := agents.Append(ctx, id, fmt.Sprint("from ", next), updates...)
			return err
		})
		if err != nil {
			return fmt.Errorf("append %d: %w", next, err)
		}
		next += group
	}
	return insist(ctx, func() error { return agents.Archive(ctx, id) })
}

// followNumbers follows an agent to its end, where every number must have come.
func followNumbers(ctx context.Context, agents *client.Agents, id string, events int) error {
	want, initial := 0, 0
	opts := &client.FollowOptions{MinBackoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond, Silence: 20 * time.Second}
	for e, err := range agents.Follow(ctx, id, opts) {
		if err != nil {
			return fmt.Errorf("after %d events: %w", want, err)
		}
		if e.Initial {
			initial++
		}
		if e.Update == nil {
			continue
		}
		if got := e.Update.GetTextDelta().GetText(); got != strconv.Itoa(want) {
			return fmt.Errorf("event %d is %q", want, got)
		}
		want++
	}
	if want != events || initial != 1 {
		return fmt.Errorf("%d events and %d beginnings, want %d and 1", want, initial, events)
	}
	return nil
}

// A push over connections that are cut again and again arrives by being repeated.
func TestPushOverABadConnection(t *testing.T) {
	ctx := t.Context()
	mem := memblob.New()
	here := transfer.Side{Blobs: blob.Checked(mem), Rows: memkv.New(mem)}
	talk, err := conversation.New(here.Blobs, here.Rows, nil).Create(ctx, conversation.Info{ID: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	const turns = 60
	for i := range turns {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("turn ", i, " ", strconv.FormatUint(rand.Uint64(), 36))})
		if err != nil {
			t.Fatal(err)
		}
		if err := talk.AppendTurn(ctx, turn); err != nil {
			t.Fatal(err)
		}
		if _, err := talk.Save(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	db, address := start(t)
	p := newProxy(t, address, 6<<10)
	runs, blobs := 0, 0
	err = insist(ctx, func() error {
		runs++
		c := dial(t, p.address)
		report, err := transfer.Run(ctx, here, transfer.Side{Blobs: c.Blobs(), Rows: c.Rows()}, nil, nil)
		blobs += report.Blobs
		if errors.Is(err, transfer.ErrChanged) { // by a commit of our own whose answer was lost
			return fmt.Errorf("%w: %w", client.ErrUnreachable, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Conversations().Get(ctx, "talk")
	if err != nil || got.Root != talk.Head().Root || got.Save != turns {
		t.Errorf("arrived: %+v, %v", got, err)
	}
	report, err := db.Check(ctx, &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
	t.Logf("%d runs, %d cuts, %d blobs sent", runs, p.cuts.Load(), blobs)
	if runs < 2 {
		t.Errorf("it took %d runs: nothing was cut", runs)
	}
	if all := 3 * turns; blobs > all+20*runs {
		t.Errorf("%d blobs were sent for %d", blobs, all)
	}
}
