package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// Three nodes share a database with a synchronous standby and a bucket. While
// clients append and save, and followers read, on whatever node, and while a node
// collects, nodes are killed, and the bucket, and the primary: no acknowledged
// write is lost, no follower misses or repeats an event, nothing refers to what is
// not there.
func TestThreeNodesLoseNothing(t *testing.T) {
	for _, version := range realservers.PostgresVersions() {
		t.Run(fmt.Sprint("postgres ", version), func(t *testing.T) { killEverything(t, version) })
	}
}

func killEverything(t *testing.T, version int) {
	agents, events := testenv.Scale(4, 12), testenv.Scale(160, 2000)
	savers, saves := testenv.Scale(3, 8), testenv.Scale(30, 300)
	primary := realservers.Postgres(t, realservers.PostgresOptions{Version: version, Fsync: true, Own: true})
	if err := primary.Exec("postgres", "CREATE DATABASE fleet"); err != nil {
		t.Fatal(err)
	}
	standby := primary.Standby(t)
	s := newSite(t, multiHost(primary, standby, "fleet"), realservers.OwnS3(t))
	all := s.startNodes(t, 3)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	var work sync.WaitGroup
	var steps atomic.Int64 // saves and appends that were acknowledged
	fail := func(err error) {
		if err != nil {
			t.Error(err)
			cancel()
		}
	}
	for n := range agents {
		id := fmt.Sprint("agent-", n)
		if _, err := all.client(t).Agents().Create(ctx, id, "", ""); err != nil {
			t.Fatal(err)
		}
		writer, readers := all.client(t).Agents(), []*client.Agents{all.client(t).Agents(), all.client(t).Agents()}
		work.Go(func() { fail(countedNumbers(ctx, writer, id, events, &steps)) })
		for _, reader := range readers {
			work.Go(func() { fail(followNumbers(ctx, reader, id, events)) })
		}
	}
	saved := make([]uint64, savers)
	for n := range savers {
		c := all.client(t)
		work.Go(func() {
			var err error
			saved[n], err = saveTurns(ctx, c, fmt.Sprint("talk-", n), saves, &steps)
			fail(err)
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	collected := collectMeanwhile(t, ctx, all, done)

	kills := []func(){
		func() { all.replace(t, 0) },
		func() { s.s3.Kill(t); s.s3.Restart(t) },
		func() { all.replace(t, 1) },
		func() { primary.Kill(t); standby.Promote(t) },
		func() { all.replace(t, 2); s.s3.Kill(t); s.s3.Restart(t) },
	}
	total := int64(agents*events + savers*saves)
	for n, kill := range kills {
		if !reached(&steps, total*int64(n+1)/int64(len(kills)+1), done) {
			t.Errorf("everything ended after %d kills", n)
			break
		}
		kill()
	}
	<-done
	t.Logf("%d collections", <-collected)
	for n, seq := range saved {
		info, err := s.shop(t).Conversations().Get(t.Context(), fmt.Sprint("talk-", n))
		if err != nil || info.Save < seq || info.Turns < uint64(saves) {
			t.Errorf("conversation %d was saved %d times: %+v, %v", n, seq, info, err)
		}
	}
	report, err := s.shop(t).Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
}

// reached waits until a counter has come to a number, or everything has ended.
func reached(steps *atomic.Int64, want int64, done <-chan struct{}) bool {
	for steps.Load() < want {
		select {
		case <-done:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// countedNumbers is writeNumbers that tells how far it is.
func countedNumbers(ctx context.Context, agents *client.Agents, id string, events int, steps *atomic.Int64) error {
	for next := 0; next < events; {
		group := min(1+rand.IntN(8), events-next)
		updates := make([]*agentv1.InteractionUpdate, group)
		for i := range updates {
			updates[i] = text(fmt.Sprint(next + i))
		}
		err := insistOn(ctx, func() error {
			_, err := agents.Append(ctx, id, fmt.Sprint("from ", next), updates...)
			return err
		})
		if err != nil {
			return fmt.Errorf("append %d to %s: %w", next, id, err)
		}
		next += group
		steps.Add(int64(group))
	}
	return insistOn(ctx, func() error { return agents.Archive(ctx, id) })
}

// insistOn is insist with pauses: what is away for seconds is not asked all the
// time.
func insistOn(ctx context.Context, call func() error) error {
	return insist(ctx, func() error {
		err := call()
		if err != nil && lost(err) {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return err
	})
}

// saveTurns saves a conversation turn by turn, some with large contents, and
// returns the last save that was acknowledged. After an error it opens it again and
// goes on from what is there, which must hold all that was acknowledged.
func saveTurns(ctx context.Context, c *client.Client, id string, turns int, steps *atomic.Int64) (last uint64, err error) {
	store := conversation.New(blob.Checked(c.Blobs()), c.Rows(), nil)
	acknowledged := 0
	for acknowledged < turns {
		err := insistOn(ctx, func() error {
			talk, err := store.Open(ctx, id)
			if errors.Is(err, conversation.ErrNotFound) {
				talk, err = store.Create(ctx, conversation.Info{ID: id})
			}
			if errors.Is(err, conversation.ErrExists) { // made by a call whose answer was lost
				return fmt.Errorf("%w: %w", client.ErrUnreachable, err)
			}
			if err != nil {
				return err
			}
			have, err := talk.Turns(ctx)
			if err == nil && have < acknowledged {
				err = fmt.Errorf("%d turns were acknowledged, %d are there", acknowledged, have)
			}
			for ; err == nil && have < turns; have++ {
				if err = saveOne(ctx, talk); err == nil {
					last, acknowledged = talk.Head().Seq, have+1
					steps.Add(1)
				}
			}
			if err == nil {
				acknowledged = turns
			}
			return err
		})
		if errors.Is(err, conversation.ErrStale) || errors.Is(err, kv.ErrConflict) || errors.Is(err, blob.ErrNotFound) {
			continue // a lost answer, or a collector that was faster than an unnamed blob
		}
		if err != nil {
			return last, fmt.Errorf("save %s: %w", id, err)
		}
	}
	return last, nil
}

func saveOne(ctx context.Context, talk *conversation.Conversation) error {
	words := fmt.Sprint("turn ", rand.Uint64())
	if rand.IntN(4) == 0 {
		var noise strings.Builder
		for range 12_000 { // does not compress below what goes to the bucket
			fmt.Fprintf(&noise, "%016x", rand.Uint64())
		}
		words = noise.String()
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: words})
	if err == nil {
		err = talk.AppendTurn(ctx, turn)
	}
	if err == nil {
		_, err = talk.Save(ctx, nil)
	}
	return err
}

// collectMeanwhile has some node collect, without any grace, until done.
func collectMeanwhile(t *testing.T, ctx context.Context, all *nodes, done <-chan struct{}) <-chan int {
	c, count := all.client(t), make(chan int, 1)
	go func() {
		n := 0
		defer func() { count <- n }()
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			_, err := c.Store().Collect(ctx, &stetv1.CollectRequest{GraceSeconds: -1})
			if err == nil {
				n++
			} else if connect.IsWireError(err) && !lost(err) && ctx.Err() == nil { // others are broken connections
				t.Errorf("collect: %v", err)
				return
			}
		}
	}()
	return count
}
