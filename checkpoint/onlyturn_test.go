package checkpoint

import (
	"errors"
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

// A single turn is taken out of the files, so a request for the conversation is refused.
func TestOnlyTurnOfAConversation(t *testing.T) {
	f, _, c, _ := talk(t)
	f.write("a", "0\n")
	say(f, c, 1, "one", "a", "1\n")
	for _, scope := range []Scope{ConversationOnly, Both} {
		if _, err := f.w.Rewind(t.Context(), RewindRequest{OnlyTurn: 1, Conversation: "talk", Scope: scope}, ""); !errors.Is(err, ErrBadRef) {
			t.Errorf("%s: %v, want ErrBadRef", scope, err)
		}
	}
	same(t, "files only", lines(f.plan(RewindRequest{OnlyTurn: 1, Conversation: "talk", Scope: FilesOnly})), []string{"restore a"})
}

// Ignored files that the turn changed, and repositories that it deleted, are named; those
// of other turns are not.
func TestOnlyTurnNamesWhatItCannotRestore(t *testing.T) {
	for name, end := range map[string]func(f *fixture){
		"ended":    func(f *fixture) { f.after("c", 2) },
		"not seen": func(f *fixture) { f.save(Request{Conversation: "c", Turn: 2, Auto: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write(".gitignore", "*.env\nbuild/\n", "a.env", "1\n", "b.env", "1\n", "c.env", "1\n", "build/x", "1\n", "code", "1\n", ".git/HEAD", "x\n")
			f.before("c", 1)
			f.write("a.env", "2\n", "code", "2\n")
			f.after("c", 1)
			f.before("c", 2)
			f.write("b.env", "2\n", "build/x", "2\n", "more", "1\n")
			f.remove(".git")
			end(f)
			f.before("c", 3)
			f.write("c.env", "2\n", "code", "3\n")
			f.after("c", 3)
			want := []string{".git", "b.env", "build/x"}
			p := f.plan(RewindRequest{OnlyTurn: 2, Conversation: "c"})
			same(t, "left", leftPaths(p), want)
			same(t, "kept", lines(p), []string{"keep .git", "keep b.env", "keep build/x", "delete more"})
			same(t, "one path", leftPaths(f.plan(RewindRequest{OnlyTurn: 2, Conversation: "c", Paths: []string{"build"}})), []string{"build/x"})
			f.remove(".gitignore") // now the files are captured, and still not what they were
			f.write(".gitignore", "a.env\nc.env\n")
			f.save(Request{})
			same(t, "captured since", leftPaths(f.plan(RewindRequest{OnlyTurn: 2, Conversation: "c"})), want)
			if done := f.rewind(RewindRequest{OnlyTurn: 2, Conversation: "c"}); !done.Plan.Partial() {
				t.Error("the rewind says that it left nothing")
			}
		})
	}
}
