package cli

import (
	"testing"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/timeline"
)

func TestNoticesOfRewinds(t *testing.T) {
	at := time.Date(2026, 11, 16, 14, 20, 0, 0, time.Local)
	by := func(seq uint64, kind, author string) *checkpoint.Operation {
		return &checkpoint.Operation{Seq: seq, Kind: kind, Author: author, Time: at.Add(time.Duration(seq) * time.Minute)}
	}
	rewind, undo := by(0, checkpoint.OpRewind, "ada"), by(1, checkpoint.OpUndo, "ada")
	turns := func(out bool, op *checkpoint.Operation, numbers ...uint64) (all []timeline.Reverted) {
		for _, n := range numbers {
			all = append(all, timeline.Reverted{Turn: n, Out: out, By: op})
		}
		return all
	}
	for _, c := range []struct {
		reverted []timeline.Reverted
		known    []uint64
		place    string
		rest     []string
		want     string
	}{
		{nil, nil, "", nil, ""},
		{turns(true, rewind, 3, 4), []uint64{3, 4}, "", nil, ""},
		{turns(false, undo, 3, 4), nil, "", nil, ""},
		{turns(true, rewind, 3, 4), nil, "after turn 2", nil, "the user rewound the files to after turn 2 at 14:20; turns 3 and 4 of this conversation are no longer in the files"},
		{turns(true, rewind, 1), nil, "before turn 1", nil, "the user rewound the files to before turn 1 at 14:20; turn 1 of this conversation is no longer in the files"},
		{turns(true, rewind, 2, 3, 4), []uint64{4}, "", []string{"a", "b\n"}, "the user rewound the files at 14:20; turns 2 and 3 of this conversation are no longer in the files, but parts may be left in a, b�"},
		{turns(true, by(0, checkpoint.OpRedo, "claude-code"), 2), nil, "", nil, "an agent redid a rewind at 14:20; turn 2 of this conversation is no longer in the files"},
		{turns(false, undo, 3, 4, 5), []uint64{3, 4, 5}, "", nil, "the user undid a rewind at 14:21; turns 3 to 5 of this conversation are in the files again"},
		{append(turns(false, undo, 2), turns(true, rewind, 5, 7, 9)...), []uint64{2}, "after turn 4", nil, "the user rewound the files to after turn 4 at 14:20; turns 5, 7 and 9 of this conversation are no longer in the files; " +
			"the user undid a rewind at 14:21; turn 2 of this conversation is in the files again"},
	} {
		n := newNotice(c.reverted, c.known)
		n.place, n.rest = c.place, c.rest
		got := n.text("claude-code")
		if c.want != "" {
			c.want = "stet: " + c.want
		}
		if got != c.want {
			t.Errorf("%v, known %v: got %q, want %q", c.reverted, c.known, got, c.want)
		}
	}
}
