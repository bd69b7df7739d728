package intake_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
)

// What is counted is what an import into an empty store does: of a branched session and
// its fork, an empty one, a damaged one and one that is gone.
func TestCountIsWhatAnImportDoes(t *testing.T) {
	f := newFixture(t)
	sessions := branched(f)
	f.id, f.path = "empty", filepath.Join(t.TempDir(), "empty.jsonl")
	f.write()
	sessions = append(sessions, f.session())
	f.id, f.path = "damaged", filepath.Join(t.TempDir(), "damaged.jsonl")
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t1", Prompt: "again"})
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(file, "garbage")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	sessions = append(sessions, f.session())
	f.id, f.path = "gone", filepath.Join(t.TempDir(), "no")
	sessions = append(sessions, f.session())
	all := func(yield func(foreign.Session, error) bool) {
		for i, s := range sessions {
			s.Size = int64(100 * i)
			if !yield(s, nil) {
				return
			}
		}
		yield(foreign.Session{}, fmt.Errorf("%w: a session", foreign.ErrUnreadable))
	}
	ctx := context.Background()
	counted, err := intake.Count(ctx, toy{}, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	did, err := intake.New(f.blobs, f.rows, toy{}).Sessions(ctx, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	did.Turns -= 1              // the turn that was written again, which grew
	did.Stored = counted.Stored // with the lists of segments, which only a store has
	if diff := cmp.Diff(did, counted); diff != "" || counted.Turns != 14 || counted.Stored < 3000 {
		t.Errorf("counted %+v:\n%s", counted, diff)
	}
}
