package intake_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/kv"
)

var errKilled = errors.New("killed")

// life is how many changes of a store a process makes before it is killed.
type life struct{ left, commits int }

func (l *life) step() error {
	if l.left--; l.left < 0 {
		return errKilled
	}
	return nil
}

type mortalBlobs struct {
	blob.Store
	life *life
}

func (m mortalBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := m.life.step(); err != nil {
		return err
	}
	return m.Store.Put(ctx, blobs...)
}

type mortalRows struct {
	kv.Store
	life *life
}

func (m mortalRows) Commit(ctx context.Context, b *kv.Batch) error {
	if err := m.life.step(); err != nil {
		return err
	}
	m.life.commits++
	return m.Store.Commit(ctx, b)
}

// copyWithin copies the session of a fixture by a process that may be killed.
func (f *fixture) copyWithin(l *life, batch int, sessions ...foreign.Session) error {
	m := intake.New(mortalBlobs{f.blobs, l}, mortalRows{f.rows, l}, toy{}).WithBatch(batch)
	for _, s := range sessions {
		if _, err := m.Session(context.Background(), s); err != nil {
			return err
		}
	}
	return nil
}

// history returns the saves of a conversation.
func (f *fixture) history(id string) (out []conversation.Save) {
	f.t.Helper()
	for save, err := range f.store.History(context.Background(), id, nil) {
		if err != nil {
			f.t.Fatal(err)
		}
		out = append(out, save)
	}
	return out
}

// branched writes a session with an open end, rewinds, turns of all sizes, and a fork of it.
func branched(f *fixture) []foreign.Session {
	for i := range 12 {
		l := toyLine{ID: fmt.Sprint("t", i), Prompt: fmt.Sprint("p", i), Reply: strings.Repeat("r", i*i*40)}
		switch i {
		case 4:
			l.Follows = "t1"
		case 8:
			l.Follows = foreign.Beginning
		case 11:
			l.Open = true
		}
		f.write(l)
	}
	origin := f.session()
	f.id, f.path = "s2", f.path+"-fork"
	f.write(toyLine{ID: "t0", Prompt: "p0"}, toyLine{ID: "t1", Prompt: "p1", Reply: strings.Repeat("r", 40)}, toyLine{ID: "f1", Prompt: "instead"})
	fork := f.session()
	fork.ForkedFrom, fork.ForkedAfter = "s1", "t1"
	return []foreign.Session{origin, fork}
}

// An import that is killed before any change of the store and run again, as often as it
// takes, gives the same conversations as one that ran once, whatever shares a commit.
func TestKilledAnywhere(t *testing.T) {
	for _, batch := range []int{1, 3000, math.MaxInt} {
		whole := newFixture(t)
		sessions := branched(whole)
		all := &life{left: math.MaxInt}
		if err := whole.copyWithin(all, batch, sessions...); err != nil {
			t.Fatal(err)
		}
		changes := math.MaxInt - all.left
		for at := range changes {
			f := newFixture(t)
			if err := f.copyWithin(&life{left: at}, batch, sessions...); !errors.Is(err, errKilled) {
				t.Fatalf("batches of %d, killed at %d of %d: %v", batch, at, changes, err)
			}
			for left := at; ; left++ { // the next process is killed later
				err := f.copyWithin(&life{left: left}, batch, sessions...)
				if err == nil {
					break
				}
				if !errors.Is(err, errKilled) {
					t.Fatalf("batches of %d, killed at %d, then at %d: %v", batch, at, left, err)
				}
			}
			for _, s := range sessions {
				if diff := cmp.Diff(whole.history(s.ID), f.history(s.ID)); diff != "" {
					t.Fatalf("batches of %d, killed at %d: conversation %s:\n%s", batch, at, s.ID, diff)
				}
				f.id, f.path = s.ID, s.Path
				f.sameSource()
			}
		}
	}
}

// Turns share commits: their number is that of the batches.
func TestTurnsShareCommits(t *testing.T) {
	f := newFixture(t)
	for i := range 100 {
		f.write(toyLine{ID: fmt.Sprint("t", i), Prompt: strings.Repeat("p", 999)})
	}
	l := &life{left: math.MaxInt}
	if err := f.copyWithin(l, 20_000, f.session()); err != nil {
		t.Fatal(err)
	}
	if most := 12; l.commits > most {
		t.Errorf("%d commits for 100 turns of 1000 bytes, want at most %d", l.commits, most)
	}
	if n := f.saves(); n != 100 {
		t.Errorf("%d saves", n)
	}
}

// The raw record of a large session is committed in parts: what a killed pass has copied
// is not copied again.
func TestKilledInTheRawRecord(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"})
	pad := strings.Repeat(" ", 1<<20-1) + "\n"
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if _, err := file.WriteString(pad); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.copyWithin(&life{left: 44}, 1, f.session()); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	if r := f.pass(); r.Bytes == 0 || r.Bytes > 10<<20 {
		t.Errorf("%d bytes are copied again", r.Bytes)
	}
	f.sameSource()
}

// A collector that removes blobs before their commit makes the pass begin again.
func TestBlobsThatAreCollectedBeforeTheirCommit(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
	rows := &collecting{Store: f.rows}
	r, err := intake.New(f.blobs, rows, toy{}).Session(context.Background(), f.session())
	if err != nil || r.Turns != 2 || f.texts() != "one:a two:b" || !rows.done {
		t.Errorf("got %+v, %v", r, err)
	}
}

// collecting are rows whose first commit with blobs finds that one is missing.
type collecting struct {
	kv.Store
	done bool
}

func (c *collecting) Commit(ctx context.Context, b *kv.Batch) error {
	if len(b.Refs) > 0 && !c.done {
		c.done = true
		return &kv.MissingBlobsError{IDs: b.Refs[:1]}
	}
	return c.Store.Commit(ctx, b)
}
