package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/upkeep"
)

// The life of a conversation, over every stack.
func TestLifeOverRealStores(t *testing.T) {
	ctx := context.Background()
	for name, open := range stacks {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			s := conversation.New(st.blobs, st.rows, nil)
			var wg sync.WaitGroup
			errs := make(chan error, 4)
			for w := range 4 {
				wg.Go(func() { errs <- live(ctx, s, fmt.Sprint("c", w)) })
			}
			wg.Wait()
			for range 4 {
				check(t, <-errs)
			}
			check(t, s.Delete(ctx, "c0", nil))
			keep := upkeep.New(upkeep.Stores{Blobs: st.blobs, Rows: st.rows, Inventory: st.inventory})
			must(keep.Collect(ctx, noGrace))
			report := must(keep.Check(ctx, &upkeep.CheckOptions{ReadData: true}))
			if !report.OK() {
				t.Fatalf("damage: %+v", report.Damage)
			}
			for w := 1; w < 4; w++ {
				state := must(s.Hydrate(ctx, fmt.Sprint("c", w), nil))
				if got := texts(t, state); len(got) != 2*26 || !slices.Contains(got, "after the rewind") {
					t.Errorf("c%d says %d things", w, len(got))
				}
			}
			if page := must(s.List(ctx, nil)); len(page.Conversations) != 3 {
				t.Errorf("%d conversations are listed, want 3", len(page.Conversations))
			}
		})
	}
}

// live saves 30 turns, goes back to the 25th and saves one more.
func live(ctx context.Context, s *conversation.Store, id string) error {
	c, err := s.Create(ctx, conversation.Info{ID: id})
	if err != nil {
		return err
	}
	save := func(text string) error {
		turn, err := conversation.NewTurn(user(id + text))
		if err == nil {
			err = c.AppendTurn(ctx, turn)
		}
		if err == nil {
			err = c.AppendStep(ctx, say(text))
		}
		if err == nil {
			err = c.SetFile(ctx, "f"+text, conversation.File{Content: conversation.NewContent([]byte(text))})
		}
		if err == nil {
			_, err = c.Save(ctx, nil)
		}
		return err
	}
	for n := range 30 {
		if n%10 == 5 { // as another process would
			if c, err = s.Open(ctx, id); err != nil {
				return err
			}
		}
		if err := save(fmt.Sprint(n)); err != nil {
			return err
		}
	}
	if _, err := c.Rewind(ctx, 25, nil); err != nil {
		return err
	}
	return save("after the rewind")
}

// Writers that fight for one conversation: each save is there or was refused.
func TestOnlyOneWriterAtATime(t *testing.T) {
	ctx := context.Background()
	st := sqliteStack(t)
	s := conversation.New(st.blobs, st.rows, nil)
	must(s.Create(ctx, conversation.Info{ID: "c"}))
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := range 10 {
				c, err := s.Open(ctx, "c")
				for k := 0; k < 3 && err == nil; k++ {
					text := fmt.Sprint(w, n, k)
					var turn conversation.Turn
					if turn, err = conversation.NewTurn(user(text)); err == nil {
						err = c.AppendTurn(ctx, turn)
					}
					if err == nil {
						_, err = c.Save(ctx, nil)
					}
					if err != nil {
						break
					}
					mu.Lock()
					acknowledged[text] = true
					mu.Unlock()
				}
				if err != nil && !errors.Is(err, conversation.ErrStale) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	got := texts(t, must(s.Hydrate(ctx, "c", nil)))
	if len(got) != len(acknowledged) {
		t.Errorf("%d turns, %d were acknowledged", len(got), len(acknowledged))
	}
	for _, text := range got {
		if !acknowledged[text] {
			t.Errorf("turn %q was not acknowledged", text)
		}
	}
	var last uint64
	for save, err := range s.History(ctx, "c", nil) {
		check(t, err)
		if save.Seq != last+1 || save.Parent != last {
			t.Errorf("save %d continues %d after %d", save.Seq, save.Parent, last)
		}
		last = save.Seq
	}
}

// A collection remembers live blobs in little memory.
func TestCollectionTakesLittleMemory(t *testing.T) {
	blobs := testenv.Scale(50_000, 1_000_000)
	ctx := context.Background()
	mem := memblob.New()
	var roots []graph.Root
	const perState = 2000
	for n := 0; n < blobs; n += perState {
		state := &agentv1.ConversationStateStructure{}
		batch := make([]blob.Blob, 0, perState)
		for i := range perState {
			b := blob.New(fmt.Appendf(nil, "%d", n+i))
			batch = append(batch, b)
			state.RootPromptMessagesJson = append(state.RootPromptMessagesJson, b.ID.Bytes())
		}
		root := must(conversation.NewItem(state))
		check(t, mem.Put(ctx, append(batch, blob.New(root.Bytes()))...))
		roots = append(roots, graph.Root{Kind: graph.State, ID: root.ID()})
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what pools kept through the first goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	live := new(graph.Set)
	check(t, graph.Walk(ctx, mem, graph.Roots(roots...), &graph.Options{Seen: live}, func(graph.Node) error { return nil }))
	each := float64(heap()-before) / float64(live.Len())
	if live.Len() < blobs || each > 200 {
		t.Errorf("%d live blobs take %.0f bytes each", live.Len(), each)
	}
	t.Logf("%d live blobs take %.0f bytes each", live.Len(), each)
	runtime.KeepAlive(live)
	runtime.KeepAlive(roots)
	runtime.KeepAlive(mem)
}
