package intake_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
)

func TestSourceOfOther(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	if _, err := intake.SourceFiles(ctx, f.blobs, f.rows, "no"); !errors.Is(err, intake.ErrNoSource) {
		t.Errorf("got %v", err)
	}
	f.write(toyLine{ID: "t1", Prompt: "one"})
	f.pass()
	if names, err := intake.SourceFiles(ctx, f.blobs, f.rows, "s1"); err != nil || !slices.Equal(names, []string{"toy.jsonl"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if s, err := intake.Session(ctx, f.store, "s1"); err != nil || s.Path != f.path || s.Agent != "toy" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// TestAConversationThatWasThereFirstLearnsWhereItsSessionIs: agents report a turn before
// its record exists, and move records later.
func TestAConversationThatWasThereFirstLearnsWhereItsSessionIs(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	early := foreign.Session{Agent: "toy", ID: f.id, Workspace: "/ws"}
	if _, err := f.store.Create(ctx, intake.Info(early, foreign.Turn{Prompt: "hello"})); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t1", Prompt: "hello", Reply: "hi"})
	for _, name := range []string{"s.jsonl", "moved.jsonl"} {
		path := filepath.Join(filepath.Dir(f.path), name)
		if err := os.Rename(f.path, path); err != nil {
			t.Fatal(err)
		}
		f.path = path
		f.pass()
		if s, err := intake.Session(ctx, f.store, f.id); err != nil || s.Path != path {
			t.Errorf("the session is at %q (%v), want %q", s.Path, err, path)
		}
	}
}
