package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/upkeep"
)

// fight is several nodes over one backend that write, read, archive, unarchive and
// collect at once. What was acknowledged is the model, which knows of no archive.
type fight struct {
	t     *testing.T
	ctx   context.Context
	nodes []*stet.DB
	acked []atomic.Uint64 // saves of each conversation; the agent has as many events
	done  atomic.Bool
}

func (f *fight) node() *stet.DB  { return f.nodes[rand.IntN(len(f.nodes))] }
func (f *fight) id(n int) string { return fmt.Sprint("conversation ", n) }

// write adds turns to a conversation, some through one node, some through another.
func (f *fight) write(n, saves int) error {
	id := f.id(n)
	var db *stet.DB
	var c *conversation.Conversation
	for i := range saves {
		var err error
		if i%4 == 0 || rand.IntN(4) == 0 {
			db = f.node()
			if c, err = db.Conversations().Open(f.ctx, id); err != nil {
				return err
			}
		}
		err = addTurn(f.ctx, c, text(n, i))
		// A collector without any grace takes what is put and not yet referred to.
		for missing := new(kv.MissingBlobsError); errors.As(err, &missing); {
			_, err = c.Save(f.ctx, nil)
		}
		if err != nil {
			return fmt.Errorf("save %d: %w", i+1, err)
		}
		_, err = db.Agents().AppendUpdate(f.ctx, id, nil, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{
			TextDelta: &agentv1.TextDeltaUpdate{Text: text(n, i)},
		}})
		if err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
		f.acked[n].Store(uint64(i + 1))
		if i == saves/2 {
			if err := f.fork(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func text(n, i int) string { return fmt.Sprintf("conversation %d, turn %d", n, i) }

// fork copies a conversation. A version that was read before it was archived on a
// second node and brought back on a third one counts as changed.
func (f *fight) fork(n int) error {
	for {
		_, err := f.node().Conversations().Fork(f.ctx, f.id(n), 0, conversation.Info{ID: "fork of " + f.id(n)})
		if !errors.Is(err, conversation.ErrNotFound) {
			return err
		}
	}
}

// read checks that nothing that was acknowledged is missing.
func (f *fight) read(n int) error {
	least := f.acked[n].Load()
	for {
		err := f.readOnce(f.node(), n, least)
		// Between the rows and the blobs it was archived elsewhere and collected.
		if !errors.Is(err, blob.ErrNotFound) {
			return err
		}
	}
}

func (f *fight) readOnce(db *stet.DB, n int, least uint64) error {
	info, err := db.Conversations().Get(f.ctx, f.id(n))
	if err != nil {
		return err
	}
	if info.Save < least {
		return fmt.Errorf("save %d is the last, %d was acknowledged", info.Save, least)
	}
	count := uint64(0)
	for save, err := range db.Conversations().History(f.ctx, f.id(n), nil) {
		if err != nil {
			return err
		}
		if count++; save.Seq != count {
			return fmt.Errorf("save %d in place %d", save.Seq, count)
		}
	}
	if count < least {
		return fmt.Errorf("a history of %d, %d were acknowledged", count, least)
	}
	agent, err := db.Agents().Get(f.ctx, f.id(n))
	if err != nil || agent.Head.Seq < least {
		return fmt.Errorf("an agent at %d, %d were acknowledged: %w", agent.Head.Seq, least, err)
	}
	if info.Save == 0 {
		return nil
	}
	state, err := db.Conversations().HydrateRoot(f.ctx, info.Root, nil)
	if err != nil {
		return err
	}
	return wantTurns(state, n, int(info.Save))
}

func wantTurns(state *conversation.State, n, want int) error {
	if len(state.Turns) != want {
		return fmt.Errorf("%d turns, want %d", len(state.Turns), want)
	}
	for i, turn := range state.Turns {
		m, err := turn.UserMessage.Decode()
		if err != nil || m.Text != text(n, i) {
			return fmt.Errorf("turn %d is %q: %v", i, m.GetText(), err)
		}
	}
	return nil
}

// house archives, unarchives or collects once.
func (f *fight) house(n int) error {
	db := f.node()
	switch rand.IntN(4) {
	case 0:
		_, err := db.Collect(f.ctx, &upkeep.CollectOptions{Grace: -1})
		return err
	case 1:
		if err := db.Unarchive(f.ctx, f.id(n)); !errors.Is(err, pack.ErrNotArchived) {
			return err
		}
		return nil
	}
	_, err := db.Archive(f.ctx, f.id(n))
	if errors.Is(err, pack.ErrArchived) || errors.Is(err, pack.ErrChanged) || errors.Is(err, pack.ErrEmpty) {
		return nil
	}
	return err
}

func TestArchivingWhileOthersWork(t *testing.T) {
	for name, ring := range map[string]*keyring.Ring{"plain": nil, "encrypted": newRing(t)} {
		t.Run(name, func(t *testing.T) {
			const conversations = 3
			saves := testenv.Scale(24, 400)
			b := memBackend()
			f := &fight{t: t, ctx: context.Background(), acked: make([]atomic.Uint64, conversations)}
			for range 3 {
				f.nodes = append(f.nodes, openOver(t, b, ring))
			}
			for n := range conversations {
				_, err := f.node().Conversations().Create(f.ctx, conversation.Info{ID: f.id(n)})
				must(t, err)
				_, err = f.node().Agents().Create(f.ctx, cloudagent.Spec{ID: f.id(n)})
				must(t, err)
			}
			f.run(conversations, saves)
			if t.Failed() {
				return
			}
			for _, db := range append(f.nodes, openOver(t, b, ring)) {
				gc(t, db)
				sound(t, db)
				for n := range conversations {
					must(t, f.readOnce(db, n, uint64(saves)))
					state, err := db.Conversations().Hydrate(t.Context(), "fork of "+f.id(n), nil)
					must(t, err)
					must(t, wantTurns(state, n, saves/2+1))
				}
			}
			must(t, f.nodes[0].UnarchiveAll(f.ctx))
			wantObjects(t, b, 0)
			for row, err := range b.Rows.Scan(f.ctx, kv.Range{Start: "stet:pack", End: "stet:pacl"}, kv.ScanOptions{}) {
				t.Errorf("row %q is left, %v", row.Key, err)
			}
		})
	}
}

func (f *fight) run(conversations, saves int) {
	var writers, others sync.WaitGroup
	report := func(who string, err error) {
		if err != nil {
			f.t.Errorf("%s: %v", who, err)
			f.done.Store(true)
		}
	}
	for n := range conversations {
		writers.Go(func() { report("writer", f.write(n, saves)) })
	}
	for who, fn := range map[string]func(int) error{"reader": f.read, "first housekeeper": f.house, "second housekeeper": f.house} {
		others.Go(func() {
			for !f.done.Load() {
				report(who, fn(rand.IntN(conversations)))
			}
		})
	}
	writers.Wait()
	f.done.Store(true)
	others.Wait()
}
