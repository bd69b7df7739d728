package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

func TestFindInAnyWorkspace(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	first := f.save(Request{Label: "first"})
	f.write("a", "2")
	second := f.save(Request{Label: "second"})
	same := 0
	for first.ID[same] == second.ID[same] {
		same++
	}
	for _, prefix := range []string{second.ID, strings.ToUpper(second.ID), second.ID[:same+1]} {
		if rec, err := f.w.s.Find(t.Context(), prefix); err != nil || rec.ID != second.ID {
			t.Errorf("find %q: %v, %v", prefix, rec, err)
		}
	}
	var several *AmbiguousError
	if _, err := f.w.s.Find(t.Context(), first.ID[:same]); same > 0 && !errors.As(err, &several) {
		t.Errorf("got %v", err)
	}
	for _, prefix := range []string{"", "zzzz", "no/id"} {
		if _, err := f.w.s.Find(t.Context(), prefix); !errors.Is(err, ErrNotFound) {
			t.Errorf("find %q: %v", prefix, err)
		}
	}
	var got []string
	for rec, err := range f.w.s.List(t.Context(), &ListOptions{Limit: 1}) {
		must(t, err)
		got = append(got, rec.ID)
	}
	if len(got) != 1 || got[0] != second.ID {
		t.Errorf("the newest is %s, got %v", second.ID, got)
	}
	if n, err := f.w.s.Interrupted(t.Context()); err != nil || n != 0 {
		t.Errorf("%d interrupted, %v", n, err)
	}
}

// The path of a workspace is known whatever its checkpoints look like.
func TestPathOfAWorkspaceWithADamagedCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	rec := f.save(Request{Label: "first"})
	must(t, f.setRow(rec.ID, []byte("\xff")))
	path, err := f.w.s.WorkspacePath(t.Context(), f.w.ID())
	if err != nil || path != f.w.Path() {
		t.Errorf("got %q, %v", path, err)
	}
	if _, err := f.w.s.WorkspacePath(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// References are found without a directory, and prefixes of ids in all workspaces.
func TestResolveWithoutADirectory(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.before("c", 1)
	f.write("a", "2")
	rec := f.after("c", 1)
	prefix := rec.ID[:len(rec.ID)-2]
	for _, tt := range []struct{ workspace, conversation, ref string }{
		{"", "", rec.ID}, {"", "", strings.ToUpper(rec.ID)}, {"", "", prefix}, {"", "c", prefix}, {"none", "", rec.ID}, {"none", "", prefix},
		{"", "c", "turn:1"}, {"", "c", "c2"}, {"", "c", "c-m1"}, {"", "c", "@{0s}"}, {f.w.ID(), "", "turn:1"}, {f.w.ID(), "c", "c-m1"},
	} {
		got, err := f.w.s.Resolve(t.Context(), tt.workspace, tt.conversation, tt.ref)
		if err != nil || got.ID != rec.ID {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
	for _, ref := range []string{"turn:1", "c2", "C2", "@{0s}", "before:c-m1", ""} {
		if _, err := f.w.s.Resolve(t.Context(), "", "", ref); !errors.Is(err, ErrBadRef) {
			t.Errorf("%q without a workspace: %v", ref, err)
		}
	}
	for _, tt := range []struct{ conversation, ref string }{{"", "c-m1"}, {"", "nothing"}, {"none", "turn:1"}, {"c", "turn:2"}} {
		if _, err := f.w.s.Resolve(t.Context(), "", tt.conversation, tt.ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	other, err := f.w.s.Open(t.Context(), testenv.TempDir(t))
	must(t, err)
	defer other.Close()
	if got, err := other.Resolve(t.Context(), prefix, ""); err != nil || got.ID != rec.ID {
		t.Errorf("%s from another workspace: %v, %v", prefix, got, err)
	}
	if _, err := other.Plan(t.Context(), RewindRequest{To: prefix}); !errors.Is(err, ErrOtherWorkspace) {
		t.Errorf("a rewind to a checkpoint of another workspace: %v", err)
	}
}
