package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stet-dev/stet"
)

// twoNodes opens a fleet twice.
func twoNodes(t *testing.T) (a, b *Fleet) {
	t.Helper()
	a = testFleet(t, Config{})
	b = testFleet(t, a.config)
	a.node, b.node = "a", "b"
	return a, b
}

func mustHold(t *testing.T, l *Lease, want bool, do func(context.Context) error) {
	t.Helper()
	if held, err := l.Hold(t.Context(), do); held != want || err != nil {
		t.Errorf("held: %v, %v; want %v", held, err, want)
	}
}

func TestOneNodeAtATimeHasALease(t *testing.T) {
	a, b := twoNodes(t)
	never := func(context.Context) error { t.Error("both nodes have the lease"); return nil }
	mustHold(t, a.Lease("work"), true, func(ctx context.Context) error {
		mustHold(t, b.Lease("work"), false, never)
		mustHold(t, b.Lease("other"), true, func(context.Context) error { return nil })
		holder, err := b.Lease("work").Holder(ctx)
		if holder != "a" {
			t.Errorf("held by %q", holder)
		}
		return err
	})
	mustHold(t, b.Lease("work"), true, func(context.Context) error { return nil })
	if holder, err := a.Lease("work").Holder(t.Context()); holder != "" || err != nil {
		t.Errorf("held by %q after the end, %v", holder, err)
	}
}

// A node that was frozen for longer than its lease lasts learns that another has it.
func TestALeaseThatRanOutIsLost(t *testing.T) {
	a, b := twoNodes(t)
	frozen, woken := a.Lease("work"), make(chan struct{})
	frozen.time = -time.Second
	frozen.wait = func(ctx context.Context, _ time.Duration) error {
		select {
		case <-woken:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := frozen.Hold(t.Context(), func(ctx context.Context) error {
		mustHold(t, b.Lease("work"), true, func(context.Context) error {
			close(woken)
			<-ctx.Done()
			return nil
		})
		return nil
	})
	if !errors.Is(err, errLeaseLost) {
		t.Errorf("the frozen node has ended with %v", err)
	}
}

func TestATaskRunsOnOneNodeWhenItIsDue(t *testing.T) {
	a, b := twoNodes(t)
	runs, fail := 0, errors.New("the disk is full\nand more")
	task := Task{Name: "sweep", Every: time.Hour, Run: func(context.Context) (int64, error) {
		runs++
		return 7, fail
	}}
	ctx := t.Context()
	look := func(want int) TaskState {
		t.Helper()
		a.keep(ctx, task)
		b.keep(ctx, task)
		states, err := b.House(ctx)
		if err != nil || len(states) != 1 || runs != want {
			t.Fatalf("%d runs, want %d: %+v, %v", runs, want, states, err)
		}
		return states[0]
	}
	late := func() { // an hour has passed
		t.Helper()
		s, err := a.state(ctx, task.Name)
		s.Ended = s.Ended.Add(-time.Hour)
		if err = errors.Join(err, a.note(ctx, s)); err != nil {
			t.Fatal(err)
		}
	}
	if s := look(0); !s.Began.IsZero() || s.Ended.IsZero() {
		t.Errorf("before the first run: %+v", s)
	}
	late()
	if s := look(1); s.Error != "the disk is full; and more" || s.Done != 7 || s.Node != "a" || !s.Succeeded.IsZero() || s.Running != "" {
		t.Errorf("after a failure: %+v", s)
	}
	fail = nil
	late()
	if err := b.PauseHouse(ctx, b.db.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	look(1)
	if err := b.PauseHouse(ctx, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if s := look(2); s.Error != "" || s.Succeeded != s.Ended {
		t.Errorf("after a success: %+v", s)
	}
	look(2)
}

func TestTheHouseIsKeptForEveryTenant(t *testing.T) {
	f := testFleet(t, Config{})
	for _, name := range []string{"shop", "bank"} {
		db, err := f.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		saveTalk(t, db, "talk", 3)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tasks := f.HouseTasks(HouseOptions{ArchiveEvery: time.Hour, CollectEvery: time.Hour})
	for _, task := range tasks {
		if err := f.runTask(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	states, err := f.House(t.Context())
	if err != nil || len(states) != 2 || states[0].Done != 2 || states[0].Error != "" || states[1].Done == 0 || states[1].Error != "" {
		t.Fatalf("%+v, %v", states, err)
	}
	err = f.EachTenant(t.Context(), func(ctx context.Context, name string, db *stet.DB) error {
		stats, err := db.Stats(ctx)
		if stats.Blobs.N != 0 {
			t.Errorf("%s has %d blobs after its conversation was archived", name, stats.Blobs.N)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
