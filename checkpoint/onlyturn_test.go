package checkpoint

import (
	"os"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// A directory of the turn stays while later work is in it, and is named.
func TestOnlyTurnKeepsDirectories(t *testing.T) {
	f := newFixture(t)
	f.before("c", 1)
	f.write("d/a", "1\n", "e/a", "1\n")
	f.after("c", 1)
	f.before("c", 2)
	f.write("d/b", "2\n")
	f.after("c", 2)
	want := testenv.Snapshot(t, f.dir)
	done := f.rewind(RewindRequest{OnlyTurn: 1, Conversation: "c"})
	same(t, "plan", lines(done.Plan), []string{"keep d", "delete d/a", "delete e", "delete e/a"})
	same(t, "left", leftPaths(done.Plan), []string{"d"})
	f.expect(map[string]string{"d": want["d"], "d/b": want["d/b"]})
	must(t, undo(f))
	f.expect(want)
}

// A directory that was removed later is made again for what the turn removed from it.
func TestOnlyTurnMakesDirectories(t *testing.T) {
	f := newFixture(t)
	f.write("d/a", "1\n")
	must(t, os.Chmod(f.path("d"), 0o750))
	want := testenv.Snapshot(t, f.dir)
	f.before("c", 1)
	f.remove("d/a")
	f.after("c", 1)
	f.before("c", 2)
	f.remove("d")
	f.after("c", 2)
	done := f.rewind(RewindRequest{OnlyTurn: 1, Conversation: "c"})
	same(t, "plan", lines(done.Plan), []string{"create d", "create d/a"})
	if done.Plan.Partial() {
		t.Errorf("left %v, want nothing", leftPaths(done.Plan))
	}
	f.expect(want)
}

// What may be of the turn or of another conversation is left alone and named, unless it
// was made in another turn.
func TestOnlyTurnOfUnknownAuthors(t *testing.T) {
	f := newFixture(t)
	f.write("f", "0\n", "g", "0\n", "own", "0\n")
	f.before("A", 1)
	f.write("own", "A\n")
	f.save(Request{Conversation: "A", Turn: 1, Auto: true})
	f.before("B", 1)
	f.write("f", "A or B\n")
	f.after("A", 1)
	f.before("A", 2)
	f.write("g", "A or B\n")
	f.after("A", 2)
	f.after("B", 1)
	f.before("C", 1)
	f.write("c", "C\n")
	f.after("C", 1)
	for turn, want := range map[uint64][]string{1: {"keep f", "restore own"}, 2: {"keep g"}} {
		p := f.plan(RewindRequest{OnlyTurn: turn, Conversation: "A"})
		same(t, "plan", lines(p), want)
		same(t, "left", leftPaths(p), []string{want[0][len("keep "):]})
		if kept := p.Kept(); len(kept) != 1 || kept[0].Words != "author unknown, several conversations were active" {
			t.Errorf("kept %+v", kept)
		}
	}
}

// A change of the turn that later ones took back leaves nothing undone.
func TestOnlyTurnWithNothingLeft(t *testing.T) {
	f := newFixture(t)
	f.write("f", "1\n2\n3\n4\n5\n")
	for turn, text := range []string{"one\n2\n3\n4\n5\n", "one\n2\n3\n4\nfive\n", "1\n2\n3\n4\nfive\n"} {
		f.before("c", uint64(turn)+1)
		f.write("f", text)
		f.after("c", uint64(turn)+1)
	}
	p := f.plan(RewindRequest{OnlyTurn: 1, Conversation: "c"})
	same(t, "plan", lines(p), []string{"keep f"})
	if p.Partial() {
		t.Errorf("left %v, want nothing", leftPaths(p))
	}
}

func leftPaths(p *Plan) []string {
	var paths []string
	for _, a := range p.Left() {
		paths = append(paths, a.Path)
	}
	return paths
}
