package timeline_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/timeline"
)

func TestGapsAreCounted(t *testing.T) {
	f := newFixture(t)
	var ids []string
	for i := range uint64(4) {
		ids = append(ids, f.take("a", i+1)) // c1 to c4
	}
	ids = append(ids, f.take("b", 1), f.take("a", 5), f.take("a", 6)) // c5 to c7
	f.forget(ids[1], ids[3])
	f.same("", "c1 (1)c3 (1)c5 c6 c7*")
	f.same("a", "c1 (1)c3 (1)c6 c7*") // the conversation of the gap is unknown
	f.same("b", "(1)c5*")
	f.forget(ids[0], ids[2])
	f.same("", "(4)c5 c6 c7*")
	f.same("b", "(4)c5*")
	f.same("a", "c6 c7*") // right before c6 is one of another conversation
	f.forget(ids[4])
	f.same("a", "(5)c6 c7*")
}

// What is gone before the first turn of a conversation was not a part of it.
func TestNoGapBeforeTheFirstTurn(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("", 0)
	c2 := f.take("", 0)
	_, err := f.w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "a", Turn: 1, Side: checkpoint.Before})
	f.must(err)
	f.forget(c1, c2)
	f.same("a", "c3*")
	f.same("", "(2)c3*")
}

func TestALimitCutsOffTheOldest(t *testing.T) {
	f := newFixture(t)
	for i := range uint64(4) {
		f.take("a", i+1)
	}
	h := f.read(timeline.Scope{Conversation: "a", Limit: 2})
	if got := text(h); got != "c3 c4*" || !h.Truncated {
		t.Errorf("got %s, truncated %v", got, h.Truncated)
	}
	if h := f.read(timeline.Scope{Conversation: "a", Limit: 4}); h.Truncated {
		t.Error("a history that fits is truncated")
	}
}

func TestQuietEntries(t *testing.T) {
	f := newFixture(t)
	before := func(conversation string, turn uint64) string {
		res, err := f.w.Checkpoint(t.Context(), checkpoint.Request{Conversation: conversation, Turn: turn, Side: checkpoint.Before})
		f.must(err)
		return res.Record.ID
	}
	before("a", 1) // the first one is shown
	c2 := f.take("a", 1)
	before("a", 2)
	c4 := before("a", 3)
	f.must(f.service.Pin(t.Context(), "here", c4, ""))
	c5 := f.take("a", 3)
	f.take("a", 4)
	f.rewind(c5, "a") // c7 and c8
	f.forget(c2)
	h := f.read(timeline.Scope{Conversation: "a"})
	var got []string
	for _, e := range h.Shown() {
		got = append(got, fmt.Sprint(e.Record.Name(), e.Pins, e.Forgotten))
	}
	// c3 is quiet: the one that is gone before it counts for c4.
	if want := "[c6[] 0 c5[] 0 c4[here] 1 c1[] 0]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if len(h.Entries) != 7 || h.Entries[4].Forgotten != 0 {
		t.Errorf("the history itself was changed: %s", text(h))
	}
}

// Pins are listed with the checkpoints and directories that they belong to.
func TestPinsOfAllWorkspaces(t *testing.T) {
	f := newFixture(t)
	other := f.open()
	ids := []string{f.take("a", 1), f.takeIn(other, "b", 1)}
	for _, id := range ids {
		f.must(f.service.Pin(t.Context(), "works", id, ""))
	}
	f.must(f.service.Pin(t.Context(), "gone", f.take("a", 2), ""))
	gone, err := f.service.Pinned(t.Context(), f.w.ID(), "gone")
	f.must(err)
	f.forget(gone.ID)
	pins, err := f.Pins(t.Context())
	f.must(err)
	got := make(map[string]string)
	for _, pin := range pins {
		name := "nothing"
		if pin.Record != nil {
			name = pin.Record.Name()
		}
		got[pin.Name+" in "+pin.Path] = name
	}
	want := map[string]string{"works in " + f.w.Path(): "c1", "works in " + other.Path(): "c1", "gone in " + f.w.Path(): "nothing"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// One checkpoint that cannot be read hides no other, and is not taken for gone.
func TestADamagedCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.take("a", 1)
	c2 := f.take("a", 2)
	f.take("a", 3)
	f.must(f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Checkpoint(c2), Value: []byte("\xff")}}}))
	for _, scope := range []timeline.Scope{{Workspace: f.w.ID()}, {Conversation: "a"}} {
		h := f.read(scope)
		if got := text(h); got != "c1 c3*" || len(h.Damaged) != 1 || h.Damaged[0].ID != c2 {
			t.Errorf("got %s, damaged %v", got, h.Damaged)
		}
	}
}

func TestTotalsOfTurns(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	f.take("a", 2)
	f.take("a", 2)
	f.rewind(c1, "a")
	_, err := f.w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "a", Turn: 2, Side: checkpoint.Before})
	f.must(err)
	f.take("a", 2)
	var got []string
	h := f.read(timeline.Scope{Conversation: "a"})
	for _, turn := range h.Turns() {
		got = append(got, fmt.Sprintf("turn %d branch %d: %d checkpoints, %d files +%d -%d",
			turn.Turn, turn.Branch, len(turn.Checkpoints), turn.Files, turn.Added, turn.Removed))
	}
	want := []string{
		"turn 2 branch 0: 2 checkpoints, 1 files +1 -1",
		"turn 2 branch 1: 2 checkpoints, 2 files +2 -2",
		"turn 1 branch 0: 1 checkpoints, 1 files +0 -0", // lines of the first one are not counted
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// Each turn is summed up at its newest checkpoint.
	got = nil
	for _, e := range h.Entries {
		if e.Total != nil {
			got = append(got, fmt.Sprintf("%s: turn %d, %d files", e.Record.Name(), e.Total.Turn, e.Total.Files))
		}
	}
	if want := "[c7: turn 2, 1 files c3: turn 2, 2 files c1: turn 1, 1 files]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	cut := f.read(timeline.Scope{Conversation: "a", Limit: 6}).Turns() // without c1
	if last := cut[len(cut)-1]; !last.Partial {
		t.Errorf("the oldest turn of a truncated history is %+v", last)
	}
}

// What is made on the way through a turn is counted in its end, and a file counts once.
func TestATurnIsOneEntry(t *testing.T) {
	f := newFixture(t)
	f.take("a", 1)
	_, err := f.w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "a", Turn: 2, Side: checkpoint.Before, Auto: true})
	f.must(err)
	way := func(content string, req checkpoint.Request) string {
		t.Helper()
		f.must(os.WriteFile(filepath.Join(f.w.Path(), "way"), []byte(content), 0o600))
		req.Conversation, req.Turn, req.Auto = "a", 2, true
		res, err := f.w.Checkpoint(t.Context(), req)
		f.must(err)
		return res.Record.ID
	}
	way("1\n", checkpoint.Request{})
	pinned := way("1\n2\n", checkpoint.Request{})
	way("1\n2\n3\n", checkpoint.Request{})
	f.must(f.service.Pin(t.Context(), "here", pinned, ""))
	way("1\n2\n3\n4\n", checkpoint.Request{Side: checkpoint.After})
	h := f.read(timeline.Scope{Conversation: "a"})
	var got []string
	for _, e := range h.Folded() {
		changed, err := h.Whole(t.Context(), e)
		f.must(err)
		got = append(got, fmt.Sprintf("%s folded %d: %d files +%d", e.Record.Name(), e.Folded, changed.Files, changed.Added))
	}
	want := []string{"c6 folded 2: 1 files +4", "c4 folded 0: 1 files +1", "c1 folded 0: 1 files +0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(h.Shown()) != 5 || h.Entries[0].Folded != 0 {
		t.Errorf("the history itself was changed: %s", text(h))
	}
}

// A turn without words and changes is quiet, such as a command that did nothing.
func TestAnEmptyTurnIsQuiet(t *testing.T) {
	f := newFixture(t)
	f.take("a", 1)
	for _, side := range []checkpoint.Side{checkpoint.Before, checkpoint.After} {
		_, err := f.w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "a", Turn: 2, Side: side, Auto: true})
		f.must(err)
	}
	shown := f.read(timeline.Scope{Conversation: "a"}).Shown()
	if len(shown) != 1 || shown[0].Record.Name() != "c1" {
		t.Errorf("%d entries are shown, want c1", len(shown))
	}
}

// The newest files have an entry that is shown: the target of a rewind, or the checkpoint
// after it if that is not the same.
func TestTheNewestFilesAreShown(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	f.take("a", 2)
	f.rewind(c1, "a") // c3 and c4
	like := func() string {
		t.Helper()
		h := f.read(timeline.Scope{Workspace: f.w.ID()})
		if e := timeline.Like(h.Shown(), h.Entries[0].Record); e != nil {
			return e.Record.Name()
		}
		return "none"
	}
	if got := like(); got != "c1" {
		t.Errorf("after a rewind to c1: %s", got)
	}
	f.take("a", 2) // c5
	f.must(os.WriteFile(filepath.Join(f.w.Path(), "yours"), []byte("yours\n"), 0o600))
	f.rewind(c1, "a") // c6 and c7; your file stays
	if got := like(); got != "c7" {
		t.Errorf("after a rewind that left a file alone: %s", got)
	}
}
