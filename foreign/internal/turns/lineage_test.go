package turns_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// tree is a record of three turns of 10 bytes behind a head of 10, in which the third
// continues the first.
func tree(t *testing.T) *turns.Lineage {
	t.Helper()
	l := turns.NewLineage("")
	l.Add("head")
	for i, turn := range []struct{ id, line, parent, follows string }{
		{"t1", "l1", "head", ""}, {"t2", "l2", "l1", ""}, {"t3", "l3", "l1", "t1"},
	} {
		follows, err := l.Follows(turn.parent)
		if err != nil || follows != turn.follows {
			t.Fatalf("%s follows %q, %v; want %q", turn.id, follows, err, turn.follows)
		}
		l.Begin(foreign.Turn{ID: turn.id, Follows: follows}, int64(10*(i+1)))
		l.Add(turn.line)
	}
	return l
}

func TestLeading(t *testing.T) {
	for _, c := range []struct {
		turn string
		end  int64
		want []turns.Span
	}{
		{"t3", 40, []turns.Span{{0, 10}, {10, 20}, {30, 40}}},
		{"t2", 25, []turns.Span{{0, 10}, {10, 20}, {20, 25}}},
		{"t1", 10, nil}, // ends where it begins
		{"t4", 40, nil},
	} {
		got := tree(t).Leading(c.turn, c.end)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.turn, got, c.want)
		}
		for at := range int64(50) {
			want := slices.ContainsFunc(c.want, func(s turns.Span) bool { return s.Begin <= at && at < s.End })
			if turns.Within(got, at) != want {
				t.Errorf("%s: byte %d: got %v", c.turn, at, !want)
			}
		}
	}
}

func TestFollows(t *testing.T) {
	l := tree(t)
	l.AddTo("summary", "l1")
	for parent, want := range map[string]string{"l3": "", "l2": "t2", "summary": "t1", "": foreign.Beginning, "head": foreign.Beginning, "lost": ""} {
		if got, err := l.Follows(parent); err != nil || got != want {
			t.Errorf("a child of %q follows %q, %v; want %q", parent, got, err, want)
		}
	}
	if !l.Has("summary") || l.Has("lost") {
		t.Error("the lines are not those that were added")
	}
	resumed := turns.NewLineage("mark")
	resumed.Add("leaf")
	if got, err := resumed.Follows("leaf"); err != nil || got != "" {
		t.Errorf("behind the mark: got %q, %v", got, err)
	}
	if _, err := resumed.Follows("earlier"); !errors.Is(err, foreign.ErrMark) {
		t.Errorf("before the mark: got %v", err)
	}
}
