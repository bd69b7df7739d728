package checkpoint

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/workspace"
)

// partial makes a tree of some files alone.
func (f *fixture) partial(files map[string]string) Imported {
	f.t.Helper()
	edits := map[string]*workspace.Entry{}
	for path, text := range files {
		e, err := workspace.PutFile(f.t.Context(), f.blobs, strings.NewReader(text))
		must(f.t, err)
		e.Mode = 0o644
		edits[path] = &e
	}
	tree, err := workspace.Edit(f.t.Context(), f.blobs, blob.ID{}, edits)
	must(f.t, err)
	return Imported{Tree: tree, Time: time.UnixMilli(1_700_000_000_000)}
}

// importTwo adds an earlier and a later checkpoint of a conversation of another program.
func (f *fixture) importTwo(directory string) []*Record {
	f.t.Helper()
	first := f.partial(map[string]string{"a.txt": "one\n"})
	first.Source, first.MessageID, first.Side, first.Turn = "cp-1", "m1", Before, 1
	first.Absent = []string{"new.txt"}
	second := f.partial(map[string]string{"a.txt": "one\ntwo\n", "new.txt": "new\n"})
	second.Source, second.MessageID, second.Side, second.Turn = "cp-2", "m1", After, 1
	second.Outside = []string{"file:///elsewhere/x"}
	list := []Imported{first, second}
	n, err := f.w.s.AddImported(f.t.Context(), "conv", directory, "cursor", list)
	must(f.t, err)
	if n != 2 {
		f.t.Fatalf("%d were added", n)
	}
	if n, err := f.w.s.AddImported(f.t.Context(), "conv", directory, "cursor", list); err != nil || n != 0 {
		f.t.Fatalf("adding them again added %d, %v", n, err)
	}
	var out []*Record
	for rec, err := range f.w.s.ListConversation(f.t.Context(), "conv") {
		must(f.t, err)
		out = append([]*Record{rec}, out...)
	}
	return out
}

// A rewind to an imported checkpoint changes the files that it knows, and no others. It
// needs no checkpoint of the directory, and can be undone.
func TestRewindToImported(t *testing.T) {
	f := newFixture(t)
	recs := f.importTwo(f.w.Path())
	f.write("a.txt", "one\ntwo\n")
	must(t, os.Chmod(f.path("a.txt"), 0o755))
	f.write("new.txt", "new\n")
	f.write("mine.txt", "mine\n")
	done := f.rewind(RewindRequest{To: "i1"})
	if done.Plan.Target.ID != recs[0].ID || done.Files != 2 {
		t.Errorf("went to %s with %d files", done.Plan.Target.Name(), done.Files)
	}
	if got := f.read("a.txt"); got != "one\n" {
		t.Errorf("a.txt is %q", got)
	}
	if got := f.read("mine.txt"); got != "mine\n" {
		t.Errorf("mine.txt is %q", got)
	}
	if _, err := os.Stat(f.path("new.txt")); !os.IsNotExist(err) {
		t.Errorf("new.txt is there: %v", err)
	}
	if info, err := os.Stat(f.path("a.txt")); err != nil || !testenv.HasMode(info, 0o755) {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	_, err := f.w.Undo(t.Context(), nil)
	must(t, err)
	if got := f.read("a.txt"); got != "one\ntwo\n" {
		t.Errorf("a.txt is %q", got)
	}
	if got := f.read("new.txt"); got != "new\n" {
		t.Errorf("new.txt is %q", got)
	}
}

// What changed since the last imported checkpoint is the user's.
func TestRewindToImportedKeepsWhatChangedSince(t *testing.T) {
	f := newFixture(t)
	f.importTwo(f.w.Path())
	f.write("a.txt", "one\ntwo\nthree\n")
	f.write("new.txt", "new\n")
	plan, err := f.w.Plan(t.Context(), RewindRequest{To: "before:m1", Conversation: "conv"})
	must(t, err)
	if got := plan.Conflicts(); len(got) != 1 || got[0] != "a.txt" || plan.Changes() != 1 {
		t.Errorf("conflicts are %v, %d changes", got, plan.Changes())
	}
	f.rewind(RewindRequest{To: "before:turn:1", Conversation: "conv", Exact: true})
	if got := f.read("a.txt"); got != "one\n" {
		t.Errorf("a.txt is %q", got)
	}
	if _, err := os.Stat(f.path("new.txt")); !os.IsNotExist(err) {
		t.Errorf("new.txt is there: %v", err)
	}
}

// Names, messages, turns and the id of the source lead to an imported checkpoint.
func TestResolveImported(t *testing.T) {
	f := newFixture(t)
	recs := f.importTwo("/not/here")
	f.write("x", "x")
	f.before("other", 1)
	for ref, want := range map[string]*Record{
		"i1": recs[0], "i2": recs[1], "cp-1": recs[0], "m1": recs[1], "before:m1": recs[0], recs[0].ID: recs[0],
	} {
		if got, err := f.w.Resolve(t.Context(), ref, ""); err != nil || got.ID != want.ID {
			t.Errorf("%s is %v, %v", ref, got, err)
		}
	}
	for ref, want := range map[string]*Record{"turn:1": recs[1], "before:turn:1": recs[0]} {
		if got, err := f.w.Resolve(t.Context(), ref, "conv"); err != nil || got.ID != want.ID {
			t.Errorf("%s is %v, %v", ref, got, err)
		}
	}
	if _, err := f.w.Plan(t.Context(), RewindRequest{To: "i1"}); !errors.Is(err, ErrOtherWorkspace) {
		t.Errorf("a plan for another directory: %v", err)
	}
	f.write("a.txt", "one\ntwo\n")
	f.rewind(RewindRequest{To: "i1", Elsewhere: true})
	if got := f.read("a.txt"); got != "one\n" {
		t.Errorf("a.txt is %q", got)
	}
	for rec, err := range f.w.List(t.Context(), nil) {
		if must(t, err); rec.Kind == Import {
			t.Errorf("%s is in the sequence of the directory", rec.Name())
		}
	}
}

// Only paths that both know are compared.
func TestComparable(t *testing.T) {
	f := newFixture(t)
	recs := f.importTwo(f.w.Path())
	f.write("a.txt", "one\n")
	f.write("mine.txt", "mine\n")
	now, err := f.w.Present(t.Context())
	must(t, err)
	changes, err := workspace.Diff(t.Context(), f.blobs, recs[1].Tree, now.Tree)
	must(t, err)
	changes, err = f.w.s.Comparable(t.Context(), changes, recs[1], nil)
	must(t, err)
	if len(changes) != 2 || changes[0].Path != "a.txt" || changes[1].Path != "new.txt" {
		t.Errorf("changes are %v", changes)
	}
	if recs[1].FilesChanged != 2 || recs[1].LinesAdded != 2 {
		t.Errorf("%d files, %d lines", recs[1].FilesChanged, recs[1].LinesAdded)
	}
}

// Policies leave imported checkpoints alone as long as there is their conversation.
func TestNoPolicyForImported(t *testing.T) {
	f := newFixture(t)
	f.importTwo(f.w.Path())
	all, err := f.w.s.Retainable(t.Context(), nil)
	must(t, err)
	if len(all) != 2 {
		t.Errorf("without their conversation %d may be removed", len(all))
	}
}
