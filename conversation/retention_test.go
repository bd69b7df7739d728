package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
)

func TestPlanRetention(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	save := func(c string, seq uint64, age time.Duration, bytes int64) conversation.Retained {
		return conversation.Retained{Conversation: c, Save: conversation.Save{Seq: seq, Time: now.Add(-age)}, Bytes: bytes}
	}
	all := []conversation.Retained{
		save("a", 1, 10*time.Hour, 100), save("a", 2, 9*time.Hour, 10), save("a", 3, 8*time.Hour, 10), save("a", 4, time.Hour, 50),
		save("b", 1, 7*time.Hour, 100), save("b", 2, 6*time.Hour, 100),
	}
	all[1].Pinned, all[3].Current, all[5].Current = true, true, true
	cases := []struct {
		name   string
		policy conversation.Policy
		want   string
	}{
		{"nothing", conversation.Policy{}, "map[] [] 0"},
		{"age", conversation.Policy{MaxAge: 7*time.Hour + time.Minute}, "map[a:[1 3]] [] 110"},
		{"count", conversation.Policy{MaxSaves: 3}, "map[a:[1]] [] 100"},
		{"count below what is kept anyway", conversation.Policy{MaxSaves: 1}, "map[a:[1 3] b:[1]] [] 210"},
		{"budget", conversation.Policy{MaxBytes: 265}, "map[a:[1 3]] [] 110"},
		{"tight budget", conversation.Policy{MaxBytes: 1}, "map[a:[1 3] b:[1]] [] 210"},
		{"tight budget, whole conversations", conversation.Policy{MaxBytes: 1, DropConversations: true}, "map[a:[1 3]] [b] 310"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			p := conversation.PlanRetention(all, c.policy, now)
			if got := fmt.Sprint(p.Saves, p.Conversations, p.Freed); got != c.want {
				t.Errorf("plan %s, want %s", got, c.want)
			}
		})
	}
}

func TestRetentionFreesWhatItPromises(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2", "3", "4")
	must(f.Pin(ctx, "p", "c", 2))
	saves := must(f.Retainable(ctx, f.mem))
	var total int64
	for _, r := range saves {
		total += r.Bytes
	}
	plan := conversation.PlanRetention(saves, conversation.Policy{MaxBytes: 1}, f.clock)
	if n := must(f.ApplyRetention(ctx, plan)); n != 2 {
		t.Errorf("removed %d saves, want 2", n)
	}
	res := must(f.Collect(ctx, f.mem, noGrace))
	if res.RemovedBytes != plan.Freed || res.KeptBytes != total-plan.Freed {
		t.Errorf("promised %d of %d bytes, the collection %+v", plan.Freed, total, res.SweepResult)
	}
	if _, err := f.MessageHead(ctx, "c", "m-1"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("message 1: %v, want ErrNotFound", err)
	}
	must(f.MessageHead(ctx, "c", "m-2"))
	f.grow(t, c, "5")
	f.expectTexts(t, "c", "1", "2", "3", "4", "5")
	if report := must(f.Check(ctx, nil)); !report.OK() {
		t.Errorf("report %+v", report.Damage)
	}
	must(f.Branches(ctx, "c"))
}

// What happens between a plan and its commits counts: pins and new saves.
func TestRetentionSeesWhatComesBetween(t *testing.T) {
	ctx := context.Background()
	t.Run("a pin before the commit", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1", "2", "3")
		plan := conversation.PlanRetention(must(f.Retainable(ctx, nil)), conversation.Policy{MaxSaves: 1}, f.clock)
		once := sync.OnceFunc(func() { must(f.Pin(ctx, "p", "c", 1)) })
		rows := &flaky{Store: f.rows, before: func(*kv.Batch) error { once(); return nil }}
		if n := must(conversation.New(f.blobs, rows, nil).ApplyRetention(ctx, plan)); n != 1 {
			t.Errorf("removed %d saves, want 1", n)
		}
		must(f.SaveAt(ctx, "c", 1))
	})
	t.Run("a pin of a conversation that is deleted", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1")
		once := sync.OnceFunc(func() { must(f.Pin(ctx, "p", "c", 1)) })
		rows := &flaky{Store: f.rows, before: func(*kv.Batch) error { once(); return nil }}
		check(t, conversation.New(f.blobs, rows, nil).Delete(ctx, "c", nil))
		if pins := must(f.Pins(ctx)); len(pins) != 0 {
			t.Errorf("pins of what is gone: %+v", pins)
		}
	})
	drop := func(t *testing.T, f *fixture, between func()) {
		t.Helper()
		tight := conversation.Policy{MaxBytes: 1, DropConversations: true}
		plan := conversation.PlanRetention(must(f.Retainable(ctx, f.mem)), tight, f.clock)
		if len(plan.Conversations) != 1 {
			t.Fatalf("plan %+v", plan)
		}
		between()
		must(f.ApplyRetention(ctx, plan))
	}
	t.Run("work in a conversation that was to go", func(t *testing.T) {
		f := newFixture(t)
		c := must(f.Create(ctx, conversation.Info{ID: "c"}))
		f.grow(t, c, "1")
		drop(t, f, func() { f.grow(t, c, "2") })
		f.expectTexts(t, "c", "1", "2")
	})
	t.Run("a pin in a conversation that was to go", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1")
		drop(t, f, func() { must(f.Pin(ctx, "p", "c", 1)) })
		f.expectTexts(t, "c", "1")
	})
	t.Run("nothing", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1")
		drop(t, f, func() {})
		if _, err := f.Get(ctx, "c"); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("it is still there: %v", err)
		}
	})
}
