package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// An exact rewind gives the tree of the checkpoint, no matter who wrote since, and an undo
// brings everything back.
func TestExactRewind(t *testing.T) {
	f := newFixture(t)
	f.write("both", "0\n", "agent", "0\n", "user", "0\n", "gone", "0\n", "d/x", "0\n", "other", "0\n", ".gitignore", "*.log\n", "never.log", "1\n")
	must(t, os.Chmod(f.path("user"), 0o755))
	c1 := f.before("c", 1)
	want := testenv.Snapshot(t, f.dir)
	f.write("both", "agent\n", "agent", "agent\n", "made", "agent\n")
	f.after("c", 1)
	f.before("o", 1)
	f.write("other", "other\n", "made-by-other", "other\n")
	f.after("o", 1)
	f.write("both", "user\n", "user", "user\n", "notes/user", "user\n", "never.log", "2\n")
	must(t, os.Chmod(f.path("user"), 0o644))
	f.remove("gone", "d")
	f.write("d", "a file\n")
	present := testenv.Snapshot(t, f.dir)

	p := f.plan(RewindRequest{To: c1.ID, Exact: true})
	if p.Partial() || len(p.Conflicts()) > 0 || !p.Exact() {
		t.Errorf("plan: %v, left %v", lines(p), p.Left())
	}
	if loose := f.plan(RewindRequest{To: c1.ID}); loose.Token == p.Token || !loose.Partial() {
		t.Errorf("the plan that is not exact: token %s, left %v", loose.Token, loose.Left())
	}
	if _, err := f.w.Rewind(t.Context(), p.Request(), p.Token); err != nil {
		t.Fatal(err)
	}
	want["never.log"] = present["never.log"] // ignored and never captured
	f.expect(want)
	if got := f.plan(RewindRequest{To: c1.ID, Exact: true}); len(got.Actions) > 0 {
		t.Errorf("again: %v", lines(got))
	}
	must(t, undo(f))
	f.expect(present)

	f.rewind(RewindRequest{To: c1.ID, Exact: true, Paths: []string{"user", "d"}})
	present["user"], present["d"], present["d/x"] = want["user"], want["d"], want["d/x"]
	f.expect(present)
	for _, req := range []RewindRequest{
		{To: c1.ID, Exact: true, Choice: KeepMine}, {OnlyTurn: 1, Exact: true}, {To: c1.ID, Exact: true, Choices: map[string]Choice{"a": Merge}},
	} {
		if _, err := f.w.Plan(t.Context(), req); !errors.Is(err, ErrBadRef) {
			t.Errorf("%+v: %v, want ErrBadRef", req, err)
		}
	}
}

// What no checkpoint could have is left alone and named, in an exact rewind too.
func TestExactRewindNamesWhatItLeaves(t *testing.T) {
	f := newFixture(t)
	f.write("pipe", "a file\n", "x.log", "then\n", ".gitignore", "*.log\n", "README", "1\n")
	c1 := f.save(Request{})
	f.remove("pipe", ".gitignore")
	testenv.Mkfifo(t, f.path("pipe"), 0o644)
	f.save(Request{})
	f.write("made/by-hand", "1\n", "made/.git/HEAD", "x\n")
	f.save(Request{})
	p := f.plan(RewindRequest{To: c1.ID, Exact: true})
	var left []string
	for _, a := range p.Left() {
		left = append(left, string(a.Why)+" "+a.Path)
	}
	same(t, "left", left, []string{"holds made", "special pipe", "not-captured-then x.log"})
	f.rewind(RewindRequest{To: c1.ID, Exact: true})
	if got := f.read("x.log"); got != "then\n" {
		t.Errorf("x.log is %q", got)
	}
	if _, err := os.Lstat(filepath.Join(f.dir, "made/by-hand")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("made/by-hand: %v", err)
	}
}

// A plan says whose the files are that it leaves alone, and calls only those the
// user's that the user wrote.
func TestWhyFilesAreLeft(t *testing.T) {
	f := newFixture(t)
	f.write("mine", "0\n", "removed", "0\n", "others", "0\n", "saved", "0\n", "agent", "0\n", "x.log", "1\n", ".gitignore", "*.log\n")
	c1 := f.before("c", 1)
	f.write("agent", "1\n")
	f.remove(".gitignore")
	f.after("c", 1)
	f.before("o", 1)
	f.write("others", "1\n")
	f.after("o", 1)
	f.write("saved", "1\n")
	f.save(Request{})
	f.write("mine", "1\n", "new", "1\n")
	f.remove("removed")
	var left []string
	for _, a := range f.plan(RewindRequest{To: c1.ID}).Left() {
		left = append(left, string(a.Why)+" "+a.Path+": "+a.Reason)
	}
	same(t, "left", left, []string{
		"yours mine: yours, changed since", "yours new: yours, created since", "conversation others: changed by conversation o",
		"yours removed: yours, removed since", "yours saved: yours, saved in a checkpoint",
		"not-captured-then x.log: not captured then: ignored",
	})
}

// What was not saved since is treated alike by rewinds to the latest checkpoint and
// to older ones.
func TestUnsavedEditsAreKept(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n", "b", "1\n")
	c1 := f.save(Request{})
	f.write("b", "2\n")
	c2 := f.save(Request{})
	f.write("a", "unsaved\n")
	f.remove("b")
	same(t, "older", lines(f.plan(RewindRequest{To: c1.ID})), []string{"keep a", "conflict b"})
	same(t, "latest", lines(f.plan(RewindRequest{To: c2.ID})), []string{"keep a", "keep b"})
	for _, to := range []string{c1.ID, c2.ID} {
		same(t, "asked for", lines(f.plan(RewindRequest{To: to, Paths: []string{"a"}})), []string{"conflict a"})
		same(t, "taken", lines(f.plan(RewindRequest{To: to, Paths: []string{"a"}, Choice: Theirs})), []string{"restore a"})
	}
	f.rewind(RewindRequest{To: c2.ID, Exact: true})
	if got := f.read("a") + f.read("b"); got != "1\n2\n" {
		t.Errorf("exact: %q", got)
	}
}
