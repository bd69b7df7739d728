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
	same(t, "left", left, []string{"holds made", "not-captured made/.git", "special pipe", "not-captured-then x.log"})
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

// What was never captured can hinder a path from going back. An exact rewind, and one that
// takes the checkpoint's versions, leaves the path alone and names it; another one asks,
// and says what the matter is.
func TestRewindsBlockedByWhatIsNotCaptured(t *testing.T) {
	f := newFixture(t)
	f.write("d", "a file\n", "e", "a file\n", "p/x", "1\n", "g", "1\n", ".gitignore", "*.log\n")
	c1 := f.before("c", 1)
	f.remove("d", "e", "p")
	f.write("d/a.log", "ignored\n", "d/b", "1\n", "e/x", "1\n", "g", "2\n")
	testenv.Mkfifo(t, f.path("e/pipe"), 0o644)
	testenv.Mkfifo(t, f.path("p"), 0o644)
	f.after("c", 1)
	present := testenv.Snapshot(t, f.dir)
	for _, req := range []RewindRequest{{To: c1.ID, Exact: true}, {To: c1.ID, Choice: Theirs}} {
		want := []string{"keep d", "delete d/b", "keep e", "delete e/x", "restore g", "keep p", "keep p/x"}
		left := []string{"holds d", "holds e", "special p", "in-the-way p/x"}
		if req.Exact { // names what makes the directories stay, too
			want = []string{"keep d", "keep d/a.log", "delete d/b", "keep e", "keep e/pipe", "delete e/x", "restore g", "keep p", "keep p/x"}
			left = []string{"holds d", "ignored d/a.log", "holds e", "special e/pipe", "special p", "in-the-way p/x"}
		}
		p := f.plan(req)
		same(t, "plan", lines(p), want)
		var got []string
		for _, a := range p.Left() {
			got = append(got, string(a.Why)+" "+a.Path)
		}
		same(t, "left", got, left)
		done := f.rewind(req)
		if f.read("g") != "1\n" || f.read("d/a.log") != "ignored\n" || !done.Plan.Partial() {
			t.Errorf("g %q, d/a.log %q, partial %v", f.read("g"), f.read("d/a.log"), done.Plan.Partial())
		}
		must(t, undo(f))
		f.expect(present)
	}
	p := f.plan(RewindRequest{To: c1.ID})
	same(t, "conflicts", p.Conflicts(), []string{"d", "e", "p/x"})
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Path == "d" && (a.About() != "holds files that are not captured" || a.Fate() != "kept") {
			t.Errorf("d: %s: %s", a.About(), a.Fate())
		}
	}
	conflict := &ConflictError{Paths: p.Conflicts(), Plan: p}
	for choice, want := range map[Choice]bool{KeepMine: true, Merge: false, MergeMarkers: false} {
		if got := conflict.ResolvedBy(choice); got != want {
			t.Errorf("resolved by %s: %v, want %v", choice, got, want)
		}
	}
}

// An undo does not pass over such a path, unless that is asked for: it would count as done.
func TestUndoBlockedByWhatIsNotCaptured(t *testing.T) {
	f := newFixture(t)
	f.write("d/x", "1\n", ".gitignore", "*.log\n")
	c1 := f.before("c", 1)
	f.remove("d")
	f.write("d", "a file\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: c1.ID})
	f.write("d/a.log", "mine\n")
	for _, choice := range []Choice{"", Theirs, Merge} {
		_, err := f.w.Undo(t.Context(), &UndoOptions{Choice: choice})
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			t.Fatalf("%q: %v, want a conflict", choice, err)
		}
		same(t, "conflicts", conflict.Paths, []string{"d"})
		if !conflict.ResolvedBy(KeepMine) || conflict.ResolvedBy(Theirs) || conflict.ResolvedBy(Merge) || conflict.ResolvedBy(MergeMarkers) {
			t.Errorf("%q: another choice than to keep it is offered", choice)
		}
	}
	_, err := f.w.Undo(t.Context(), &UndoOptions{Choice: KeepMine})
	must(t, err)
	if got := f.read("d/a.log"); got != "mine\n" {
		t.Errorf("d/a.log is %q", got)
	}
}

// Nobody knows what was in a directory that was ignored at the checkpoint.
func TestFilesOfADirectoryThatWasIgnored(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "out/\n*.log\n", "out/a", "1\n", "x.log", "1\n")
	c1 := f.before("c", 1)
	f.write(".gitignore", "", "out/b", "2\n")
	f.after("c", 1)
	p := f.plan(RewindRequest{To: c1.ID, Exact: true})
	var got []string
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Kind == Keep {
			got = append(got, a.Path+": "+a.About()+"; "+a.Reason)
		}
	}
	const inside = ": in a directory that was not captured then; in a directory that was not captured then: ignored"
	same(t, "kept", got, []string{"out: there then, but not captured; not captured then: ignored", "out/a" + inside, "out/b" + inside,
		"x.log: there then, but not captured; not captured then: ignored"})
	f.rewind(RewindRequest{To: c1.ID, Exact: true})
	if f.read("out/a") != "1\n" || f.read("out/b") != "2\n" {
		t.Errorf("out/a %q, out/b %q", f.read("out/a"), f.read("out/b"))
	}
}
