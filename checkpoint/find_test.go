package checkpoint

import (
	"errors"
	"strings"
	"testing"
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
