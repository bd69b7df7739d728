package cloudagent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/testenv"
)

// pulled is a Receiver over a stream in the same process.
type pulled struct {
	next func() (*aiserverv1.StreamConversationResponse, error, bool)
	stop func()
	// faults, if set, is asked before each response.
	faults func() mishap
	saved  *aiserverv1.StreamConversationResponse
}

type mishap int

const (
	fine mishap = iota
	lost        // the response is gone with the connection
	twice
	dropped // the response is gone, the connection is not
	drained // the server is stopping and ends the stream properly
)

var errLost = errors.New("connection lost")

func pull(ctx context.Context, s *cloudagent.Store, agent string, opts cloudagent.StreamOptions, faults func() mishap) *pulled {
	next, stop := iter.Pull2(s.Stream(ctx, agent, &opts))
	return &pulled{next: next, stop: stop, faults: faults}
}

func (p *pulled) Receive(ctx context.Context) (*aiserverv1.StreamConversationResponse, error) {
	if m := p.saved; m != nil {
		p.saved = nil
		return m, nil
	}
	m, err, ok := p.next()
	if !ok {
		return nil, io.EOF
	}
	if err != nil || p.faults == nil {
		return m, err
	}
	switch p.faults() {
	case lost:
		return nil, errLost
	case drained:
		return nil, io.EOF
	case twice:
		p.saved = m
	case dropped:
		if m.GetInteractionUpdateWithOffset() != nil {
			return p.Receive(ctx)
		}
	}
	return m, nil
}

func (p *pulled) Close() error { p.stop(); return nil }

func fetcher(s *cloudagent.Store, agent string) func(context.Context, []blob.ID) ([]blob.Blob, error) {
	return func(ctx context.Context, ids []blob.ID) ([]blob.Blob, error) {
		out := make([]blob.Blob, len(ids))
		for i, id := range ids {
			data, err := s.GetBlob(ctx, agent, id)
			if err != nil {
				return nil, err
			}
			out[i] = blob.Blob{ID: id, Data: data}
		}
		return out, nil
	}
}

// Several agents are written to and followed over connections that break all the
// time: nothing is lost, repeated or reordered.
func TestFollowersMissNothing(t *testing.T) {
	const agents = 10
	events := testenv.Scale(50_000, 200_000) / agents
	s := memory().store()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for n := range agents {
		agent := fmt.Sprint("agent-", n)
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: agent, Status: running}))
		wg.Go(func() { writeNumbers(ctx, t, s, agent, uint64(n), events) })
		wg.Go(func() { followNumbers(ctx, t, s, agent, uint64(n), events) })
	}
	wg.Wait()
}

// writeNumbers appends the numbers from 0, in groups, and a state now and then.
func writeNumbers(ctx context.Context, t *testing.T, s *cloudagent.Store, agent string, seed uint64, events int) {
	rng := rand.New(rand.NewPCG(1, seed))
	for next := 0; next < events; {
		group := min(1+rng.IntN(64), events-next)
		texts := make([]any, group)
		for i := range texts {
			texts[i] = next + i
		}
		if err := appendTexts(ctx, s, agent, texts...); err != nil {
			t.Error(err)
			return
		}
		next += group
		if rng.IntN(20) == 0 {
			state, blobs := stateOf(1 + rng.IntN(3))
			if _, err := s.SaveState(ctx, agent, state, blobs, &cloudagent.SaveOptions{Offset: beginning(ctx, s, agent)}); err != nil {
				t.Error(err)
				return
			}
		}
	}
	if err := s.Archive(ctx, agent); err != nil {
		t.Error(err)
	}
}

// beginning is the place before the first event, so that an initial state stands
// for none of the events and every one must arrive.
func beginning(ctx context.Context, s *cloudagent.Store, agent string) string {
	got, err := s.Get(ctx, agent)
	if err != nil {
		return err.Error()
	}
	return got.StateAt.String()
}

func appendTexts(ctx context.Context, s *cloudagent.Store, agent string, texts ...any) error {
	_, err := s.AppendUpdate(ctx, agent, nil, updatesOf(texts...)...)
	return err
}

func followNumbers(ctx context.Context, t *testing.T, s *cloudagent.Store, agent string, seed uint64, events int) {
	rng := rand.New(rand.NewPCG(2, seed))
	faults := func() mishap {
		switch n := rng.IntN(1000); {
		case n < 10:
			return lost
		case n < 20:
			return twice
		case n < 21:
			return dropped
		case n < 30:
			return drained
		}
		return fine
	}
	next, initials, dials := 0, 0, 0
	var last cloudagent.Offset
	for e, err := range cloudagent.Follow(ctx, cloudagent.FollowOptions{
		Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			if dials++; rng.IntN(10) == 0 {
				return nil, errLost
			}
			return pull(ctx, s, agent, cloudagent.StreamOptions{After: after, MaxBlobsAfterPrefetch: rng.IntN(3) - 1}, faults), nil
		},
		Fetch: fetcher(s, agent), Cache: memblob.New(), MinBackoff: time.Microsecond, MaxBackoff: time.Millisecond,
	}) {
		if err != nil {
			t.Errorf("%s after %d: %v", agent, next, err)
			return
		}
		at, err := cloudagent.ParseOffset(e.Offset)
		if err != nil {
			t.Error(err)
			return
		}
		switch {
		case e.Initial:
			initials++
			last = at
			continue
		case e.Update != nil:
			if got := e.Update.GetTextDelta().GetText(); got != strconv.Itoa(next) {
				t.Errorf("%s: event %q, want %d", agent, got, next)
				return
			}
			next++
		}
		if at.Seq != last.Seq+1 {
			t.Errorf("%s: offset %v after %v", agent, at, last)
			return
		}
		last = at
	}
	if next != events || initials != 1 {
		t.Errorf("%s: %d events after %d beginnings, want %d after 1", agent, next, initials, events)
	}
	if dials < 3 {
		t.Errorf("%s: only %d connections, the test shows nothing", agent, dials)
	}
}

// The end of a connection is not the end of an agent, not even of one that has ended:
// a server that stops ends its streams properly, after any number of responses.
func TestFollowersOfEndedAgentsMissNothing(t *testing.T) {
	const events = 40
	for _, status := range []cloudagent.Status{cloudagent.StatusArchived, cloudagent.StatusExpired} {
		ctx, s := t.Context(), memory().store()
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
		for n := range events {
			must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, updatesOf(n)...))
			if n == events/2 { // the log goes on after a status that looks like its end
				must[cloudagent.Offset](t)(s.SetStatus(ctx, "a", status, nil))
				must[cloudagent.Offset](t)(s.SetStatus(ctx, "a", running, nil))
			}
		}
		must[cloudagent.Offset](t)(s.SetStatus(ctx, "a", status, nil))
		for each := range 5 {
			next, initials, left := 0, 0, 0
			for e, err := range cloudagent.Follow(ctx, cloudagent.FollowOptions{
				Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
					left = each + 1 + min(1, 1-initials) // the first needs two
					return pull(ctx, s, "a", cloudagent.StreamOptions{After: after}, func() mishap {
						if left--; left < 0 {
							return drained
						}
						return fine
					}), nil
				},
				MinBackoff: time.Microsecond, MaxBackoff: time.Microsecond,
			}) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Initial {
					initials++
				}
				if e.Update != nil {
					if got := e.Update.GetTextDelta().GetText(); got != strconv.Itoa(next) {
						t.Fatalf("event %d is %q", next, got)
					}
					next++
				}
			}
			if next != events || initials != 1 {
				t.Errorf("%s, drained after %d: %d events after %d beginnings, want %d after 1", status, each+1, next, initials, events)
			}
		}
	}
}

func idOf(data []byte) blob.ID { return blob.Sum(data) }

func followOptions(s *cloudagent.Store, agent string) cloudagent.FollowOptions {
	return cloudagent.FollowOptions{
		Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			return pull(ctx, s, agent, cloudagent.StreamOptions{After: after}, nil), nil
		},
		Fetch: fetcher(s, agent), MinBackoff: time.Microsecond,
	}
}

// A blob that the peer cannot provide does not end a follower. The state names it.
func TestOneDamagedBlobDoesNotEndAFollower(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	state, blobs := stateOf(3)
	must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
	must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("after")))
	if err := s.Archive(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	damaged := map[blob.ID]string{blob.ID(blobs[2].Id): "absent", blob.ID(blobs[4].Id): "changed"}
	cache, fetch := memblob.New(), fetcher(s, "a")
	var missing []blob.ID
	after := ""
	for e, err := range cloudagent.Follow(ctx, cloudagent.FollowOptions{
		Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			return pull(ctx, s, "a", cloudagent.StreamOptions{After: after, MaxBlobsAfterPrefetch: -1}, nil), nil
		},
		Fetch: func(ctx context.Context, ids []blob.ID) ([]blob.Blob, error) {
			got, err := fetch(ctx, ids)
			var out []blob.Blob
			for _, b := range got {
				switch damaged[b.ID] {
				case "changed":
					b.Data = []byte("other bytes")
					fallthrough
				case "":
					out = append(out, b)
				}
			}
			return out, err
		},
		Cache: cache, MinBackoff: time.Microsecond,
	}) {
		if err != nil {
			t.Fatal(err)
		}
		missing = append(missing, e.Missing...)
		after += e.Update.GetTextDelta().GetText()
	}
	if len(missing) != 2 || damaged[missing[0]] == "" || damaged[missing[1]] == "" || after != "after" {
		t.Errorf("missing %v, then %q", missing, after)
	}
}

// skipping leaves out the update of one text.
type skipping struct {
	*pulled
	text string
}

func (p skipping) Receive(ctx context.Context) (*aiserverv1.StreamConversationResponse, error) {
	m, err := p.pulled.Receive(ctx)
	if m.GetInteractionUpdateWithOffset().GetInteractionUpdate().GetTextDelta().GetText() == p.text {
		return p.pulled.Receive(ctx)
	}
	return m, err
}

// A peer that leaves out an event again and again is not believed.
func TestFollowRefusesAGap(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, updatesOf(1, 2, 3)...))
	var got []string
	var last error
	dials := 0
	for e, err := range cloudagent.Follow(ctx, cloudagent.FollowOptions{
		Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			dials++
			return skipping{pull(ctx, s, "a", cloudagent.StreamOptions{After: after}, nil), "2"}, nil
		},
		MinBackoff: time.Microsecond,
	}) {
		if last = err; err == nil && !e.Initial {
			got = append(got, e.Update.GetTextDelta().GetText())
		}
	}
	if !errors.Is(last, cloudagent.ErrDataLoss) || fmt.Sprint(got) != "[1]" || dials != 3 {
		t.Errorf("the follower got %q over %d connections, then %v", got, dials, last)
	}
}

// A follower has every blob of a state before it gives the state.
func TestFollowerFetchesWhatDidNotCome(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	state, blobs := stateOf(20)
	saved := must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
	if err := s.Archive(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for name, max := range map[string]int{"none came": -1, "some came": 5, "all came": 1000} {
		cache := memblob.New()
		asked := 0
		fetch := fetcher(s, "a")
		for e, err := range cloudagent.Follow(ctx, cloudagent.FollowOptions{
			Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
				return pull(ctx, s, "a", cloudagent.StreamOptions{After: after, MaxBlobsAfterPrefetch: max}, nil), nil
			},
			Fetch: func(ctx context.Context, ids []blob.ID) ([]blob.Blob, error) {
				asked += len(ids)
				return fetch(ctx, ids)
			},
			Cache: cache,
		}) {
			if err != nil {
				t.Fatal(err)
			}
			if !e.Initial {
				continue
			}
			for _, b := range blobs {
				if got, err := cache.Get(ctx, blob.ID(b.Id)); err != nil || string(got) != string(b.Value) {
					t.Errorf("%s: blob is %q, %v", name, got, err)
				}
			}
			if _, err := cache.Get(ctx, saved.State); err != nil {
				t.Errorf("%s: state: %v", name, err)
			}
		}
		if none := asked == 0; none != (max == 1000) {
			t.Errorf("%s: %d blobs were asked for", name, asked)
		}
	}
}

// What no connection can cure is told.
func TestFollowGivesPermanentErrors(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	refused := errors.New("not your agent")
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	state, blobs := stateOf(1)
	must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
	open := func(agent string) func(context.Context, string) (cloudagent.Receiver, error) {
		return func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			return pull(ctx, s, agent, cloudagent.StreamOptions{After: after, MaxBlobsAfterPrefetch: -1}, nil), nil
		}
	}
	for name, c := range map[string]struct {
		opts cloudagent.FollowOptions
		want error
	}{
		"no agent":  {cloudagent.FollowOptions{Dial: open("nobody")}, cloudagent.ErrNotFound},
		"no dialer": {cloudagent.FollowOptions{}, cloudagent.ErrInvalid},
		"refused": {cloudagent.FollowOptions{
			Dial:      func(context.Context, string) (cloudagent.Receiver, error) { return nil, refused },
			Permanent: func(err error) bool { return errors.Is(err, refused) },
		}, refused},
	} {
		var last error
		for _, err := range cloudagent.Follow(ctx, c.opts) {
			last = err
		}
		if !errors.Is(last, c.want) {
			t.Errorf("%s: %v, want %v", name, last, c.want)
		}
	}
}
