package cloudagent_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/kv"
)

// counted counts the reads of a store.
type counted struct {
	kv.Store
	gets, scans atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string) (kv.Row, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counted) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	c.scans.Add(1)
	return c.Store.Scan(ctx, r, opts)
}

// crowd follows an agent many times and encodes every message, as a server does.
type crowd struct {
	encodings atomic.Int64
	messages  atomic.Int64
	work      sync.WaitGroup
}

func (c *crowd) follow(ctx context.Context, s *cloudagent.Store, agent string, n int, opts cloudagent.StreamOptions) {
	for range n {
		c.work.Go(func() {
			for m, err := range s.Messages(ctx, agent, &opts) {
				if err != nil {
					return // ctx is done
				}
				c.messages.Add(1)
				_, _ = m.Encoded("test", func() ([]byte, error) { c.encodings.Add(1); return nil, nil })
			}
		})
	}
}

// Whatever the number of followers, an event is read once and encoded once, and followers
// that wait read nothing.
func TestFollowersShareReadsAndEncodings(t *testing.T) {
	const followers, events = 100, 10
	synctest.Test(t, func(t *testing.T) {
		b := memory()
		rows := &counted{Store: b.rows}
		writer, s := b.store(), cloudagent.New(b.blobs, rows, nil)
		ctx, cancel := context.WithCancel(t.Context())
		must[cloudagent.Agent](t)(writer.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
		var c crowd
		c.follow(ctx, s, "a", followers, cloudagent.StreamOptions{Heartbeat: -1})
		synctest.Wait()
		served := func() { // many followers let the answer to an append leave first
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		begin := func() { rows.gets.Store(0); rows.scans.Store(0); c.encodings.Store(0); c.messages.Store(0) }
		check := func(what string, wantEncodings, wantScans, mostGets int64) {
			t.Helper()
			synctest.Wait()
			if got, want := c.messages.Load(), wantEncodings*followers; got != want {
				t.Errorf("%s: %d messages were sent, want %d", what, got, want)
			}
			if got := c.encodings.Load(); got != wantEncodings {
				t.Errorf("%s: encoded %d times, want %d", what, got, wantEncodings)
			}
			if scans, gets := rows.scans.Load(), rows.gets.Load(); scans > wantScans || gets > mostGets {
				t.Errorf("%s: read %d ranges and %d rows, want %d and %d at most", what, scans, gets, wantScans, mostGets)
			}
		}
		begin()
		for i := range events {
			must[cloudagent.Offset](t)(writer.AppendUpdate(ctx, "a", nil, text(fmt.Sprint(i))))
			served()
		}
		check("updates", events, events, 0)
		begin()
		must[cloudagent.Offset](t)(writer.SetStatus(ctx, "a", idle, nil))
		served()
		check("a status", 1, 1, 1)
		begin()
		state, blobs := stateOf(3)
		must[cloudagent.Saved](t)(writer.SaveState(ctx, "a", state, blobs, nil))
		served()
		check("a state", 1, 1, 0)
		begin()
		time.Sleep(time.Minute) // polling, for all of them together
		check("a minute of silence", 0, 60, 60)
		cancel()
		c.work.Wait()
	})
}

// A follower that does not read holds up nobody and gets everything later, from the store.
func TestASlowFollowerHoldsUpNobody(t *testing.T) {
	const events, each = 40, 64
	long := strings.Repeat("x", 8<<10) // more in total than is kept in memory
	synctest.Test(t, func(t *testing.T) {
		s := memory().store()
		ctx, cancel := context.WithCancel(t.Context())
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
		var work sync.WaitGroup
		var got [3]int
		free := make(chan struct{})
		for i := range got {
			work.Go(func() {
				for m, err := range s.Messages(ctx, "a", nil) {
					if err != nil {
						t.Errorf("follower %d: %v", i, err)
						return
					}
					u := m.GetInteractionUpdateWithOffset().GetInteractionUpdate().GetTextDelta().GetText()
					if u == "" {
						continue
					}
					if want := fmt.Sprintf("%d %s", got[i], long); u != want {
						t.Errorf("follower %d got %.20q as event %d", i, u, got[i])
					}
					if got[i]++; i == 0 && got[i] == 1 {
						<-free
					}
				}
			})
		}
		synctest.Wait()
		for n := range events {
			texts := make([]any, each)
			for k := range texts {
				texts[k] = fmt.Sprintf("%d %s", n*each+k, long)
			}
			if err := appendTexts(ctx, s, "a", texts...); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if got[0] != 1 || got[1] != events*each || got[2] != events*each {
			t.Errorf("while one follower does not read, they have %v of %d events", got, events*each)
		}
		close(free)
		if err := s.Archive(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		work.Wait() // the streams end with the agent
		if got[0] != events*each {
			t.Errorf("the slow follower got %d events of %d", got[0], events*each)
		}
		cancel()
	})
}

// An agent that ends and begins again is followed all the way by a stream that allows it,
// and ends the others where it ended first.
func TestSharedStreamsEndWithTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory().store()
		ctx, cancel := context.WithCancel(t.Context())
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
		var ending, lasting crowd
		ending.follow(ctx, s, "a", 5, cloudagent.StreamOptions{Heartbeat: -1})
		lasting.follow(ctx, s, "a", 5, cloudagent.StreamOptions{Heartbeat: -1, AllowTerminal: true})
		synctest.Wait()
		if err := s.Archive(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		ending.work.Wait()
		must[cloudagent.Offset](t)(s.SetStatus(ctx, "a", running, nil))
		must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("again")))
		synctest.Wait()
		// The initial state, its place and the end; then the status and the update.
		if got, want := [2]int64{ending.messages.Load(), lasting.messages.Load()}, [2]int64{5 * 3, 5 * 5}; got != want {
			t.Errorf("sent %v messages, want %v", got, want)
		}
		cancel()
		lasting.work.Wait()
	})
}
