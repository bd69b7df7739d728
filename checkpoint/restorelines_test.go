package checkpoint

import (
	"errors"
	"testing"
)

func TestPutBack(t *testing.T) {
	const to, from = "a\nb\nc\nd\ne\n", "a\nB\nc\nD\ne\nf\n"
	for _, tt := range []struct {
		ranges []LineRange
		want   string
	}{
		{[]LineRange{{2, 1, 2, 1}}, "a\nb\nc\nD\ne\nf\n"},
		{[]LineRange{{3, 3, 3, 3}}, "a\nB\nc\nd\ne\nf\n"}, // with the lines around it
		{[]LineRange{{5, 0, 6, 1}}, "a\nB\nc\nD\ne\n"},
		{[]LineRange{{4, 1, 4, 1}, {2, 1, 2, 1}}, "a\nb\nc\nd\ne\nf\n"},
		{[]LineRange{{1, 1, 0, 0}}, "a\na\nB\nc\nD\ne\nf\n"},
	} {
		got, err := PutBack([]byte(to), []byte(from), tt.ranges)
		if err != nil || string(got) != tt.want {
			t.Errorf("%v: %q, %v, want %q", tt.ranges, got, err, tt.want)
		}
	}
	for _, bad := range [][]LineRange{{{6, 1, 2, 1}}, {{2, 1, 7, 1}}, {{0, 1, 2, 1}}, {{2, -1, 2, 1}}, {{2, 1, 2, 2}, {3, 1, 3, 1}}} {
		if _, err := PutBack([]byte(to), []byte(from), bad); !errors.Is(err, ErrBadRef) {
			t.Errorf("%v: %v, want a bad reference", bad, err)
		}
	}
}

// Lines of a checkpoint come back into the file as it is now. Everything else in it
// stays, whoever wrote it, and an undo takes the lines out again.
func TestLinesArePutBack(t *testing.T) {
	f := newFixture(t)
	f.write("f", "1\n2\n3\n4\n5\n6\n7\n", "other", "0\n")
	c1 := f.before("c", 1)
	f.write("f", "1\nTWO\n3\n4\n5\nSIX\n7\n", "other", "1\n")
	c2 := f.after("c", 1)
	f.write("f", "1\nTWO\n3\nmine\n4\n5\nSIX\n7\n")
	second := &Lines{Path: "f", From: c2.ID, Ranges: []LineRange{{Line: 2, Lines: 1, FromLine: 2, FromLines: 1}}}
	p := f.plan(RewindRequest{To: c1.ID, Lines: second})
	same(t, "plan", lines(p), []string{"restore f"})
	if !p.Actions[0].Merged || p.Moves() {
		t.Errorf("plan %+v", p.Actions[0])
	}
	f.rewind(RewindRequest{To: c1.ID, Lines: second})
	if got := f.read("f"); got != "1\n2\n3\nmine\n4\n5\nSIX\n7\n" {
		t.Errorf("with the second line: %q", got)
	}
	if got := f.read("other"); got != "1\n" {
		t.Errorf("another file: %q", got)
	}
	f.rewind(RewindRequest{To: c1.ID, Lines: &Lines{Path: "f", From: "@", Ranges: []LineRange{{6, 1, 7, 1}}}})
	if got := f.read("f"); got != "1\n2\n3\nmine\n4\n5\n6\n7\n" {
		t.Errorf("with the sixth line: %q", got)
	}
	must(t, undo(f))
	must(t, undo(f))
	if got := f.read("f"); got != "1\nTWO\n3\nmine\n4\n5\nSIX\n7\n" {
		t.Errorf("after undo: %q", got)
	}
	for _, bad := range []RewindRequest{
		{To: c1.ID, Lines: &Lines{Path: "f"}},
		{To: c1.ID, Lines: &Lines{Path: "none", Ranges: second.Ranges}},
		{To: c1.ID, Lines: second, Exact: true},
		{To: c1.ID, Lines: second, Paths: []string{"f"}},
		{To: c1.ID, Lines: second, Scope: Both},
	} {
		if _, err := f.w.Plan(t.Context(), bad); !errors.Is(err, ErrBadRef) {
			t.Errorf("%+v: %v, want a bad request", bad, err)
		}
	}
}

// Lines that were changed since are a conflict that says why, and nothing changes.
func TestLinesThatWereChangedSince(t *testing.T) {
	f := newFixture(t)
	f.write("f", "1\n2\n3\n")
	c1 := f.before("c", 1)
	f.write("f", "1\nTWO\n3\n")
	c2 := f.after("c", 1)
	f.write("f", "1\nmine\n3\n")
	p := f.plan(RewindRequest{To: c1.ID, Lines: &Lines{Path: "f", From: c2.ID, Ranges: []LineRange{{2, 1, 2, 1}}}})
	same(t, "plan", lines(p), []string{"conflict f"})
	if a := p.Actions[0]; a.NoMerge != "the same lines were changed on both sides" || len(p.Unchosen()) != 1 {
		t.Errorf("conflict %+v", a)
	}
}

// A conflict says whether a merge resolves it before anybody chooses.
func TestConflictsSayWhetherTheyMerge(t *testing.T) {
	f := newFixture(t)
	f.write("apart", "1\n2\n3\n4\n", "same", "1\n", "binary", "\x00")
	c1 := f.before("c", 1)
	f.write("apart", "ONE\n2\n3\n4\n", "same", "2\n", "binary", "\x00\x01", "made", "1\n")
	f.after("c", 1)
	f.write("apart", "ONE\n2\n3\nmine\n", "same", "3\n", "binary", "\x00\x02", "made", "1\nmine\n")
	for _, choice := range []Choice{"", Merge} {
		got := make(map[string]string)
		for _, a := range f.plan(RewindRequest{To: c1.ID, Choice: choice}).Actions {
			if a.Kind == Conflict {
				got[a.Path] = a.NoMerge
			}
		}
		want := map[string]string{
			"same":   "the same lines were changed on both sides",
			"binary": "it is binary or too large",
			"made":   "it was created, removed or replaced, not only changed",
		}
		if choice == "" {
			want["apart"] = ""
		}
		if len(got) != len(want) {
			t.Errorf("with %q: conflicts %v, want %v", choice, got, want)
		}
		for path, why := range want {
			if got[path] != why {
				t.Errorf("with %q: %s: %q, want %q", choice, path, got[path], why)
			}
		}
	}
}
