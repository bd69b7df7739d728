package cloudagent_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
)

// Two handles with connections of their own append to one agent: the log has no
// gap, and the updates of each writer keep their order.
func TestTwoHandlesMakeOneLog(t *testing.T) {
	dir := t.TempDir()
	handles := []*cloudagent.Store{embedded(t, dir).store(), embedded(t, dir).store()}
	ctx := t.Context()
	must[cloudagent.Agent](t)(handles[0].Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	each := testenv.Scale(150, 3000)
	var wg sync.WaitGroup
	for w, s := range handles {
		for part := range 2 {
			wg.Go(func() {
				for i := range each {
					if _, err := s.AppendUpdate(ctx, "a", nil, text(fmt.Sprintf("%d.%d %d", w, part, i))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	next := map[string]int{}
	start := must[cloudagent.Agent](t)(handles[0].Get(ctx, "a"))
	if int(start.Head.Seq) != 4*each {
		t.Errorf("head is %d, want %d", start.Head.Seq, 4*each)
	}
	for _, m := range take(t, handles[0], "a", 4*each+2, nil)[2:] {
		var writer string
		var n int
		if _, err := fmt.Sscanf(describe(m), "text %s %d", &writer, &n); err != nil {
			t.Fatal(err)
		}
		if n != next[writer] {
			t.Fatalf("writer %s: update %d, want %d", writer, n, next[writer])
		}
		next[writer]++
	}
}

// An append that is repeated with its key adds nothing.
func TestAppendWithAKeyHappensOnce(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := b.store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a"}))
	key := &cloudagent.AppendOptions{Key: "k1"}
	first := must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", key, text("x"), text("y")))
	must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("z")))
	if again := must[cloudagent.Offset](t)(b.store().AppendUpdate(ctx, "a", key, text("x"), text("y"))); again != first {
		t.Errorf("repeated append ends at %v, want %v", again, first)
	}
	if got := must[cloudagent.Agent](t)(s.Get(ctx, "a")); got.Head.Seq != 3 {
		t.Errorf("head is %v, want 3", got.Head)
	}
}

// A writer that is no longer the only one finds out and changes nothing.
func TestStaleWriterGetsAConflict(t *testing.T) {
	ctx, b := t.Context(), memory()
	one, two := b.store(), b.store()
	head := must[cloudagent.Agent](t)(one.Create(ctx, cloudagent.Spec{ID: "a"})).Head
	mine := must[cloudagent.Offset](t)(one.AppendUpdate(ctx, "a", &cloudagent.AppendOptions{IfHead: &head}, text("1")))
	mine = must[cloudagent.Offset](t)(one.AppendUpdate(ctx, "a", &cloudagent.AppendOptions{IfHead: &mine}, text("2")))
	must[cloudagent.Offset](t)(two.AppendUpdate(ctx, "a", nil, text("other")))
	if _, err := one.AppendUpdate(ctx, "a", &cloudagent.AppendOptions{IfHead: &mine}, text("3")); !errors.Is(err, cloudagent.ErrConflict) {
		t.Errorf("append of a stale writer: %v, want ErrConflict", err)
	}
	if _, err := one.SaveState(ctx, "a", &aiserverv1.CloudAgentState{}, nil, &cloudagent.SaveOptions{IfHead: &mine}); !errors.Is(err, cloudagent.ErrConflict) {
		t.Errorf("save of a stale writer: %v, want ErrConflict", err)
	}
	if got := must[cloudagent.Agent](t)(one.Get(ctx, "a")); got.Head.Seq != 3 {
		t.Errorf("head is %v, want 3", got.Head)
	}
}

// A deleted agent is gone, its neighbours are not, and its offsets lead nowhere.
func TestDeletedAgentIsGone(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		ctx, s := t.Context(), b.store()
		for _, agent := range []string{"a", "a:b", "ab"} {
			must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: agent, Status: running}))
			state, blobs := stateOf(1)
			must[cloudagent.Saved](t)(s.SaveState(ctx, agent, state, blobs, nil))
		}
		old := must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("x")))
		if err := s.Delete(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "a"); !errors.Is(err, cloudagent.ErrNotFound) {
			t.Errorf("deleting it again: %v, want ErrNotFound", err)
		}
		if n := len(allRows(t, b)); n != 6 { // record, metadata and event of two
			t.Errorf("%d rows are left, want 6", n)
		}
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
		must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, updatesOf(1, 2, 3)...))
		if got := take(t, s, "a", 1, &cloudagent.StreamOptions{After: old.String()}); got[0].GetInitialState() == nil {
			t.Errorf("an offset of the old agent gets %s", describe(got[0]))
		}
	})
}

func TestAppendRefusesWhatItCannotKeep(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a"}))
	for name, c := range map[string]struct {
		err  func() error
		want error
	}{
		"nothing":  {func() error { _, err := s.AppendUpdate(ctx, "a", nil); return err }, cloudagent.ErrInvalid},
		"nobody":   {func() error { _, err := s.AppendUpdate(ctx, "b", nil, text("x")); return err }, cloudagent.ErrNotFound},
		"no id":    {func() error { _, err := s.AppendUpdate(ctx, "", nil, text("x")); return err }, cloudagent.ErrInvalid},
		"no UTF-8": {func() error { _, err := s.AppendUpdate(ctx, "a", nil, text("\xff")); return err }, cloudagent.ErrInvalid},
		"too large": {func() error {
			_, err := s.AppendUpdate(ctx, "a", nil, text("x"), text(string(make([]byte, kv.MaxValue))))
			return err
		}, cloudagent.ErrTooLarge},
		"canceled": {func() error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := s.AppendUpdate(ctx, "a", nil, text("x"))
			return err
		}, context.Canceled},
		"conflicting status": {func() error {
			_, err := s.SetStatus(ctx, "a", idle, &cloudagent.StatusOptions{From: []cloudagent.Status{running}})
			return err
		}, cloudagent.ErrConflict},
	} {
		if err := c.err(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got := must[cloudagent.Agent](t)(s.Get(ctx, "a")); got.Head.Seq != 0 {
		t.Errorf("head is %v, want 0", got.Head)
	}
}

// A log that lost an event says so; it is never silent.
func TestLostEventIsDataLoss(t *testing.T) {
	for name, damage := range map[string]func(b backend) *kv.Batch{
		"removed": func(backend) *kv.Batch { return &kv.Batch{Delete: []string{keyspace.AgentEvent("a", 3)}} },
		"last removed": func(backend) *kv.Batch {
			return &kv.Batch{Delete: []string{keyspace.AgentEvent("a", 5)}}
		},
		"replaced by its neighbour": func(b backend) *kv.Batch {
			row, err := b.rows.Get(t.Context(), keyspace.AgentEvent("a", 2))
			if err != nil {
				t.Fatal(err)
			}
			return &kv.Batch{Set: []kv.Set{{Key: keyspace.AgentEvent("a", 3), Value: row.Value}}}
		},
		"changed": func(b backend) *kv.Batch {
			row, err := b.rows.Get(t.Context(), keyspace.AgentEvent("a", 3))
			if err != nil {
				t.Fatal(err)
			}
			row.Value[len(row.Value)-1] ^= 1
			return &kv.Batch{Set: []kv.Set{{Key: row.Key, Value: row.Value}}}
		},
		"emptied": func(backend) *kv.Batch {
			return &kv.Batch{Set: []kv.Set{{Key: keyspace.AgentEvent("a", 3)}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, b := t.Context(), memory()
			s := b.store()
			must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
			must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, updatesOf(1, 2, 3, 4, 5)...))
			if err := b.rows.Commit(ctx, damage(b)); err != nil {
				t.Fatal(err)
			}
			var last error
			for m, err := range s.Stream(ctx, "a", nil) {
				if last = err; err == nil && describe(m) == "text 5" {
					t.Fatal("the stream came to its end")
				}
			}
			if !errors.Is(last, cloudagent.ErrDataLoss) {
				t.Errorf("stream ends with %v, want ErrDataLoss", last)
			}
		})
	}
}

// rewindTo puts rows back to an earlier time, as a restored backup does.
func rewindTo(t *testing.T, b backend, rows []kv.Row) {
	t.Helper()
	batch := &kv.Batch{DeleteRange: []kv.Range{{}}}
	for _, r := range rows {
		batch.Set = append(batch.Set, kv.Set{Key: r.Key, Value: r.Value})
	}
	if err := b.rows.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

func allRows(t *testing.T, b backend) []kv.Row {
	t.Helper()
	var out []kv.Row
	for row, err := range b.rows.Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

// A reader that knows events which the restored store does not have starts over,
// also when the log has grown past the reader's place since.
func TestReadersOfARestoredStoreStartOver(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := b.store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	common := must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("1"), text("2")))
	backup := allRows(t, b)
	ahead := must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("3"), text("4")))
	rewindTo(t, b, backup)

	initial := "initial 0 turns " + running.String()
	if got := take(t, s, "a", 1, &cloudagent.StreamOptions{After: ahead.String()}); describe(got[0]) != initial {
		t.Errorf("a reader ahead of the log gets %q", describe(got[0]))
	}
	must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, updatesOf("other 3", "other 4", "other 5")...))
	if got := take(t, s, "a", 1, &cloudagent.StreamOptions{After: ahead.String()}); describe(got[0]) != initial {
		t.Errorf("a reader of the other history gets %q", describe(got[0]))
	}
	if got := take(t, s, "a", 1, &cloudagent.StreamOptions{After: common.String()}); describe(got[0]) != "text other 3" {
		t.Errorf("a reader of the common part gets %q", describe(got[0]))
	}
}

// From any offset of any history a reader gets exactly the rest.
func TestResumeFromAnyOffset(t *testing.T) {
	state, blobs := stateOf(1)
	rapid.Check(t, func(rt *rapid.T) {
		ctx, s := t.Context(), memory().store()
		agent := rapid.StringMatching(`[a-z:%]{1,8}`).Draw(rt, "agent")
		made, err := s.Create(ctx, cloudagent.Spec{ID: agent, Status: running})
		if err != nil {
			rt.Fatal(err)
		}
		var offsets []string
		add := func(o cloudagent.Offset, err error) {
			if err != nil {
				rt.Fatal(err)
			}
			offsets = append(offsets, o.String())
		}
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				saved, err := s.SaveState(ctx, agent, state, blobs, nil)
				add(saved.Offset, err)
			case 1:
				add(s.SetStatus(ctx, agent, []cloudagent.Status{running, idle}[len(offsets)%2], nil))
				if n := len(offsets); n > 1 && offsets[n-1] == offsets[n-2] {
					offsets = offsets[:n-1] // it had that status
				} else if n == 1 && offsets[0] == made.Head.String() {
					offsets = nil
				}
			default:
				add(s.AppendUpdate(ctx, agent, nil, text(fmt.Sprint(i))))
			}
		}
		if err := s.Archive(ctx, agent); err != nil {
			rt.Fatal(err)
		}
		end, err := s.Get(ctx, agent)
		if err != nil {
			rt.Fatal(err)
		}
		offsets = append(offsets, end.Head.String())
		from := rapid.IntRange(0, len(offsets)-1).Draw(rt, "from")
		after := made.Head.String()
		if from > 0 {
			after = offsets[from-1]
		}
		var got []string
		for m, err := range s.Stream(ctx, agent, &cloudagent.StreamOptions{After: after}) {
			if err != nil {
				rt.Fatal(err)
			}
			got = append(got, offsetIn(m))
		}
		if fmt.Sprint(got) != fmt.Sprint(offsets[from:]) {
			rt.Fatalf("after %s: %v, want %v", after, got, offsets[from:])
		}
	})
}

func offsetIn(m *aiserverv1.StreamConversationResponse) string {
	switch v := m.Message.(type) {
	case *aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset_:
		return v.InteractionUpdateWithOffset.OffsetKey
	case *aiserverv1.StreamConversationResponse_CloudAgentStateWithIdAndOffset_:
		return v.CloudAgentStateWithIdAndOffset.OffsetKey
	case *aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset_:
		return v.WorkflowStatusWithOffset.OffsetKey
	}
	return "none"
}

// Of many writers that all expect the same state or status, one wins.
func TestExpectationsAreLinearizable(t *testing.T) {
	dir := t.TempDir()
	stores := []*cloudagent.Store{embedded(t, dir).store(), embedded(t, dir).store()}
	ctx := t.Context()
	must[cloudagent.Agent](t)(stores[0].Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	rounds := testenv.Scale(15, 300)
	statuses := []cloudagent.Status{running, idle}
	var expected blob.ID
	for round := range rounds {
		var mu sync.Mutex
		var statusWins int
		var saved []blob.ID
		var wg sync.WaitGroup
		for w := range 8 {
			s := stores[w%2]
			wg.Go(func() {
				_, err := s.SetStatus(ctx, "a", statuses[(round+1)%2], &cloudagent.StatusOptions{From: []cloudagent.Status{statuses[round%2]}})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					statusWins++
				} else if !errors.Is(err, cloudagent.ErrConflict) {
					t.Error(err)
				}
			})
			wg.Go(func() {
				state := &aiserverv1.CloudAgentState{AgentSessionId: new(string)}
				*state.AgentSessionId = fmt.Sprint(round, w)
				got, err := s.SaveState(ctx, "a", state, nil, &cloudagent.SaveOptions{IfState: &expected})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					saved = append(saved, got.State)
				} else if !errors.Is(err, cloudagent.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		now := must[cloudagent.Agent](t)(stores[1].Get(ctx, "a"))
		if statusWins != 1 || len(saved) != 1 || saved[0] != now.State || now.Status != statuses[(round+1)%2] {
			t.Fatalf("round %d: %d status changes and %d states won, the agent is %+v", round, statusWins, len(saved), now)
		}
		expected = now.State
	}
	if got := must[cloudagent.Agent](t)(stores[0].Get(ctx, "a")).Head.Seq; got != uint64(2*rounds) {
		t.Errorf("head is %d, want %d", got, 2*rounds)
	}
}

// collecting runs a collection before its first commit.
type collecting struct {
	kv.Store
	collect func()
	once    sync.Once
}

func (c *collecting) Commit(ctx context.Context, b *kv.Batch) error {
	c.once.Do(c.collect)
	return c.Store.Commit(ctx, b)
}

// A blob that an update names and nobody else keeps goes between the look at it and
// the commit. It counts as one that comes later.
func TestAppendOutlivesACollection(t *testing.T) {
	ctx, mem := t.Context(), memblob.New()
	rows := memkv.New(mem)
	must[cloudagent.Agent](t)(cloudagent.New(mem, rows, nil).Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	image := wireBlob("image")
	if err := mem.Put(ctx, blob.New(image.Value)); err != nil {
		t.Fatal(err)
	}
	s := cloudagent.New(mem, &collecting{Store: rows, collect: func() {
		if _, err := upkeep.New(upkeep.Stores{Blobs: mem, Rows: rows, Inventory: mem}).Collect(ctx, &upkeep.CollectOptions{Grace: -1}); err != nil {
			t.Error(err)
		}
	}}, nil)
	_, err := s.AppendUpdate(ctx, "a", nil, &agentv1.InteractionUpdate{
		Message: &agentv1.InteractionUpdate_UserMessageAppended{UserMessageAppended: &agentv1.UserMessageAppendedUpdate{
			UserMessage: &agentv1.UserMessage{TextBlobId: image.Id},
		}},
	})
	if err != nil {
		t.Errorf("append: %v", err)
	}
}
