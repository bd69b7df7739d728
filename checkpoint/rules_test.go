package checkpoint

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/workspace"
)

func (f *fixture) read(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(f.path(name))
	must(f.t, err)
	return string(data)
}

// What the user changed after the agent is a conflict and kept; what the agent
// never touched is left alone.
func TestUsersFilesAreKept(t *testing.T) {
	f := newFixture(t)
	f.write("both.txt", "a\nb\nc\nd\ne\n", "agent.txt", "old\n", "README", "old\n")
	c1 := f.before("c", 1)
	f.write("both.txt", "AGENT\nb\nc\nd\ne\n", "agent.txt", "new\nlines\n", "made.txt", "made\n")
	f.after("c", 1)
	f.write("both.txt", "AGENT\nb\nc\nd\nUSER\n", "README", "user's\n", "notes/user.txt", "user's\n")

	p := f.plan(RewindRequest{To: c1.ID})
	same(t, "plan", lines(p), []string{
		"keep README", "restore agent.txt", "conflict both.txt", "delete made.txt", "keep notes", "keep notes/user.txt",
	})
	a := p.Actions[1]
	if a.Add != 1 || a.Del != 2 {
		t.Errorf("agent.txt: +%d -%d, want +1 -2", a.Add, a.Del)
	}
	if w := p.Actions[3].Writer; w == nil || w.Conversation != "c" || w.Turn != 1 || w.MessageID != "c-m1" {
		t.Errorf("made.txt was written by %+v, want turn 1 of c", w)
	}
	if w := p.Actions[2].Writer; w == nil || w.Class != ByUser {
		t.Errorf("both.txt was last written by %+v, want the user", w)
	}
	before := testenv.Snapshot(t, f.dir)
	if _, err := f.w.Rewind(t.Context(), p.Request(), p.Token); err != nil {
		t.Fatal(err)
	}
	before["agent.txt"] = "-rw-r--r-- old\n"
	delete(before, "made.txt")
	f.expect(before)

	if got := f.plan(RewindRequest{To: c1.ID, Choice: Merge}); len(got.Conflicts()) != 0 {
		t.Errorf("merging leaves %v", got.Conflicts())
	}
	f.rewind(RewindRequest{To: c1.ID, Choice: Merge})
	if got := f.read("both.txt"); got != "a\nb\nc\nd\nUSER\n" {
		t.Errorf("merged: %q", got)
	}
	must(t, undo(f))
	if got := f.read("both.txt"); got != "AGENT\nb\nc\nd\nUSER\n" {
		t.Errorf("after undo: %q", got)
	}
	f.rewind(RewindRequest{To: c1.ID, Choices: map[string]Choice{"both.txt": Theirs}})
	if got := f.read("both.txt"); got != "a\nb\nc\nd\ne\n" {
		t.Errorf("taken: %q", got)
	}
}

func undo(f *fixture) error {
	_, err := f.w.Undo(f.t.Context(), nil)
	return err
}

// Conflict markers are written on request only.
func TestMergeMarkers(t *testing.T) {
	f := newFixture(t)
	f.write("f", "1\n")
	c1 := f.before("c", 1)
	f.write("f", "2\n")
	f.after("c", 1)
	f.write("f", "3\n")
	p := f.plan(RewindRequest{To: c1.ID, Choice: Merge})
	same(t, "merge", lines(p), []string{"conflict f"})
	f.rewind(RewindRequest{To: c1.ID, Choice: MergeMarkers})
	if got := f.read("f"); got != "<<<<<<< present\n3\n=======\n1\n>>>>>>> rewind\n" {
		t.Errorf("got %q", got)
	}
}

// Two conversations in one folder never undo each other.
func TestTwoConversations(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n", "b", "0\n", "shared", "0\n")
	a1 := f.before("A", 1)
	f.write("a", "A\n", "shared", "A\n")
	f.after("A", 1)
	b1 := f.before("B", 1)
	f.write("b", "B\n", "shared", "B\n", "new-b", "B\n")
	f.after("B", 1)
	same(t, "A", lines(f.plan(RewindRequest{To: a1.ID})), []string{"restore a", "keep b", "keep new-b", "conflict shared"})
	same(t, "B", lines(f.plan(RewindRequest{To: b1.ID})), []string{"restore b", "delete new-b", "restore shared"})
	f.rewind(RewindRequest{To: a1.ID})
	for name, want := range map[string]string{"a": "0\n", "b": "B\n", "new-b": "B\n", "shared": "B\n"} {
		if got := f.read(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// When two conversations work at the same time, what they say they touched tells
// them apart, and what nobody claims is nobody's to take back, unless one asks for
// that very file.
func TestConversationsAtTheSameTime(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n", "b", "0\n", "x", "0\n")
	a1 := f.before("A", 1)
	f.before("B", 1)
	f.write("a", "A\n", "b", "B\n", "x", "?\n")
	f.save(Request{Conversation: "A", Turn: 1, Side: After, Touched: []string{"a"}})
	f.save(Request{Conversation: "B", Turn: 1, Side: After, Touched: []string{f.path("b")}}) // as editors spell it
	same(t, "A", lines(f.plan(RewindRequest{To: a1.ID})), []string{"restore a", "keep b", "keep x"})
	same(t, "B", lines(f.plan(RewindRequest{To: a1.ID, Conversation: "B"})), []string{"keep a", "restore b", "keep x"})
	same(t, "A, theirs", lines(f.plan(RewindRequest{To: a1.ID, Choice: Theirs})), []string{"restore a", "keep b", "keep x"})
	same(t, "x", lines(f.plan(RewindRequest{To: a1.ID, Paths: []string{"x"}})), []string{"conflict x"})
	same(t, "x, theirs", lines(f.plan(RewindRequest{To: a1.ID, Paths: []string{"x"}, Choice: Theirs})), []string{"restore x"})
	same(t, "x for C", lines(f.plan(RewindRequest{To: a1.ID, Conversation: "C", Paths: []string{"x"}, Choice: Theirs})), []string{"keep x"})
}

// A turn that was killed does not keep claiming what others do.
func TestKilledTurnEnds(t *testing.T) {
	f := newFixture(t)
	c := newClock()
	f.opts.Now = c.Now
	f.reopen()
	f.write("a", "0\n")
	f.before("dead", 1)
	c.advance(2 * time.Hour)
	b := f.before("B", 1)
	f.write("a", "B\n")
	f.after("B", 1)
	same(t, "B", lines(f.plan(RewindRequest{To: b.ID})), []string{"restore a"})
}

// Checkpoints without a conversation: what they saw can be taken back, what was
// created or changed since the last of them is the user's.
func TestManualCheckpoints(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n", "b", "0\n", "c", "0\n")
	c1 := f.save(Request{Label: "one"})
	f.write("a", "1\n", "b", "1\n", "made", "1\n")
	c2 := f.save(Request{Label: "two"})
	f.write("a", "2\n", "c", "2\n", "new", "2\n")
	same(t, "to the first", lines(f.plan(RewindRequest{To: c1.Name()})),
		[]string{"conflict a", "restore b", "keep c", "delete made", "keep new"})
	same(t, "to the last", lines(f.plan(RewindRequest{To: c2.Name()})),
		[]string{"keep a", "keep c", "keep new"})
}

// A rewind without a conversation takes back what agents did in between.
func TestManualAroundAgent(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n", "readme", "0\n")
	c1 := f.save(Request{})
	f.write("readme", "user\n")
	f.before("run", 0)
	f.write("a", "agent\n", "made", "agent\n")
	f.after("run", 0)
	same(t, "plan", lines(f.plan(RewindRequest{To: c1.ID})), []string{"restore a", "delete made", "keep readme"})
}

// Only after-checkpoints: each vouches for what came since the one before.
func TestAfterOnly(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n")
	m1 := f.after("c", 1)
	f.write("a", "1\n")
	f.after("c", 2)
	f.write("b", "user\n")
	same(t, "plan", lines(f.plan(RewindRequest{To: m1.MessageID})), []string{"restore a", "keep b"})
}

// .git is never touched, also one inside a directory that the agent made.
func TestGitIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.write(".git/HEAD", "ref\n", ".git/index", "i\n", "a", "0\n")
	c1 := f.before("c", 1)
	f.write("a", "1\n", "clone/.git/HEAD", "ref\n", "clone/file", "x\n", ".git/index", "changed\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: c1.ID})
	if got := testenv.Snapshot(t, f.dir); len(testenv.Differ(got, map[string]string{
		".git": got[".git"], ".git/HEAD": "-rw-r--r-- ref\n", ".git/index": "-rw-r--r-- changed\n", "a": "-rw-r--r-- 0\n",
		"clone": got["clone"], "clone/.git": got["clone/.git"], "clone/.git/HEAD": "-rw-r--r-- ref\n",
	})) > 0 {
		t.Errorf("got %v", got)
	}
}

// Files that were there and ignored are not the agent's because it changed the
// ignore file.
func TestIgnoredBefore(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "data/\n*.log\n", "a", "0\n")
	early := f.before("c", 1)
	f.after("c", 1)
	f.write("data/results", "precious\n", "x.log", "log\n")
	c2 := f.before("c", 2)
	f.write(".gitignore", "\n", "a", "1\n")
	f.after("c", 2)
	for _, to := range []*Record{c2, early} {
		p := f.plan(RewindRequest{To: to.ID})
		for _, a := range p.Actions {
			if a.Kind == Delete {
				t.Errorf("to %s: %s would be deleted", to.Name(), a.Path)
			}
		}
	}
	f.rewind(RewindRequest{To: early.ID})
	if f.read("data/results") != "precious\n" || f.read("x.log") != "log\n" || f.read("a") != "0\n" {
		t.Error("files are not as expected")
	}
	must(t, undo(f))
	if f.read("data/results") != "precious\n" || f.read(".gitignore") != "\n" {
		t.Error("after undo files are not as expected")
	}
}

// Ignored files that the agent touched are content.
func TestTouchedIgnored(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "*.env\n", "x.env", "secret\n")
	c1 := f.save(Request{Conversation: "c", Side: Before, Turn: 1, Touched: []string{"x.env"}})
	f.write("x.env", "agent\n")
	f.save(Request{Conversation: "c", Side: After, Turn: 1, Touched: []string{"x.env"}})
	f.rewind(RewindRequest{To: c1.ID})
	if got := f.read("x.env"); got != "secret\n" {
		t.Errorf("x.env is %q", got)
	}
}

// A directory that comes back empty is ignored by now.
func TestEmptyDirectoryIgnored(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n", "out/x", "0\n")
	must(t, os.MkdirAll(f.path("out/empty"), 0o750))
	must(t, os.Mkdir(f.path("bin"), 0o755))
	c1 := f.before("c", 1)
	want := testenv.Snapshot(t, f.dir)
	f.remove("out", "bin")
	f.write(".gitignore", "out/\nbin/\n", "a", "1\n")
	f.after("c", 1)
	present := testenv.Snapshot(t, f.dir)
	f.rewind(RewindRequest{To: c1.ID, Paths: []string{"out", "bin", "a"}})
	want[".gitignore"] = present[".gitignore"]
	f.expect(want)
	must(t, undo(f))
	f.expect(present)
}

// Special files and files that are too large are named and left alone.
func TestNotCaptured(t *testing.T) {
	f := newFixture(t)
	f.opts.Scan = workspace.Options{MaxFile: 100}
	f.reopen()
	f.write("a", "0\n", "grows", "small\n", "becomes-fifo", "file\n")
	c1 := f.before("c", 1)
	f.write("a", "1\n", "grows", strings.Repeat("x", 200), "big", strings.Repeat("y", 200))
	f.remove("becomes-fifo")
	testenv.Mkfifo(t, f.path("becomes-fifo"), 0o644)
	testenv.Mkfifo(t, f.path("fifo"), 0o644)
	res, err := f.w.Checkpoint(t.Context(), Request{Conversation: "c", Turn: 1, Side: After})
	must(t, err)
	var names []string
	for _, k := range res.NotCaptured {
		names = append(names, k.Path+": "+string(k.Reason))
	}
	want := []string{"becomes-fifo: special file", "big: too large", "fifo: special file", "grows: too large"}
	same(t, "not captured", names, want)
	if res.Complete() || res.Record.NotCaptured != 4 {
		t.Errorf("the result does not say that it is incomplete: %+v", res.Record)
	}
	p := f.plan(RewindRequest{To: c1.ID})
	same(t, "plan", lines(p), []string{"restore a", "keep becomes-fifo", "keep grows"})
	if len(p.NotCaptured) != 4 {
		t.Errorf("the plan names %v", p.NotCaptured)
	}
	f.rewind(RewindRequest{To: c1.ID, Choice: Theirs})
	if info, err := os.Lstat(f.path("becomes-fifo")); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the FIFO is gone: %v, %v", info, err)
	}
}

// A plan is refused when the workspace moved on, or for another token.
func TestStalePlan(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n")
	c1 := f.before("c", 1)
	f.write("a", "1\n")
	f.after("c", 1)
	p := f.plan(RewindRequest{To: c1.ID})
	again := f.plan(RewindRequest{To: c1.ID})
	if p.Token != again.Token {
		t.Error("the same plan has two tokens")
	}
	if f.plan(RewindRequest{To: c1.ID, Choice: Theirs}).Token == p.Token {
		t.Error("another choice gives the same token")
	}
	if _, err := f.w.Rewind(t.Context(), p.Request(), "other"); !errors.Is(err, ErrStalePlan) {
		t.Errorf("wrong token: %v", err)
	}
	f.write("a", "2\n")
	present := testenv.Snapshot(t, f.dir)
	if _, err := f.w.Rewind(t.Context(), p.Request(), p.Token); !errors.Is(err, ErrStalePlan) {
		t.Errorf("stale plan: %v", err)
	}
	f.expect(present)
}

// Only the asked-for paths change.
func TestSomePaths(t *testing.T) {
	f := newFixture(t)
	f.write("d/a", "0\n", "d/b", "0\n", "e", "0\n", "dd", "0\n")
	c1 := f.before("c", 1)
	f.remove("d")
	f.write("e", "1\n", "dd", "1\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: c1.ID, Paths: []string{"d/a"}})
	if got := testenv.Snapshot(t, f.dir); got["d/a"] != "-rw-r--r-- 0\n" || got["d/b"] != "" || got["e"] != "-rw-r--r-- 1\n" {
		t.Errorf("got %v", got)
	}
	f.rewind(RewindRequest{To: c1.ID, Paths: []string{"d"}})
	if f.read("d/b") != "0\n" || f.read("dd") != "1\n" {
		t.Error("d/b should be back, dd should not")
	}
	for _, path := range []string{"../x", ""} {
		if _, err := f.w.Plan(t.Context(), RewindRequest{To: c1.ID, Paths: []string{path}}); !errors.Is(err, workspace.ErrBadPath) {
			t.Errorf("plan for %q: %v", path, err)
		}
		for what, req := range map[string]Request{
			"paths": {Paths: []string{"e", path}}, "touched": {Touched: []string{path}}, "shared": {Shared: []string{path}},
		} {
			if _, err := f.w.Checkpoint(t.Context(), req); !errors.Is(err, workspace.ErrBadPath) {
				t.Errorf("checkpoint with %s %q: %v", what, path, err)
			}
		}
	}
}

// One turn is taken out of the middle; what came later stays.
func TestOnlyTurn(t *testing.T) {
	f := newFixture(t)
	f.write("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "g", "0\n")
	turn := func(n uint64, pairs ...string) {
		f.before("c", n)
		f.write(pairs...)
		f.after("c", n)
	}
	turn(1, "f", "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
	turn(2, "f", "one\n2\n3\n4\nFIVE\n6\n7\n8\n9\n", "made2", "2\n", "g", "2\n")
	turn(3, "f", "one\n2\n3\n4\nFIVE\n6\n7\n8\nnine\n", "g", "3\n", "made3", "3\n")
	p := f.plan(RewindRequest{OnlyTurn: 2})
	same(t, "plan", lines(p), []string{"restore f", "conflict g", "delete made2"})
	f.rewind(RewindRequest{OnlyTurn: 2, Conversation: "c"})
	if got := f.read("f"); got != "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" {
		t.Errorf("f is %q", got)
	}
	if f.read("g") != "3\n" || f.read("made3") != "3\n" {
		t.Error("turn 3 lost something")
	}
	must(t, undo(f))
	if f.read("made2") != "2\n" {
		t.Error("undo did not bring turn 2 back")
	}
	if _, err := f.w.Plan(t.Context(), RewindRequest{OnlyTurn: 9}); !errors.Is(err, ErrNotFound) {
		t.Errorf("turn 9: %v", err)
	}
}

// An undo is refused when files changed since, and nothing changes.
func TestUndoConflict(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n", "b", "0\n")
	c1 := f.before("c", 1)
	f.write("a", "1\n", "b", "1\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: c1.ID})
	f.write("a", "user\n")
	present := testenv.Snapshot(t, f.dir)
	_, err := f.w.Undo(t.Context(), nil)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || len(conflict.Paths) != 1 || conflict.Paths[0] != "a" {
		t.Fatalf("undo: %v, want a conflict about a", err)
	}
	f.expect(present)
	for _, opts := range []UndoOptions{{Choice: Merge}, {Choice: KeepMine, Choices: map[string]Choice{"a": Merge}}} {
		if _, err := f.w.Undo(t.Context(), &opts); !errors.As(err, &conflict) || len(conflict.Paths) != 1 {
			t.Errorf("undo with %v, whose lines collide: %v, want a conflict about a", opts, err)
		}
		f.expect(present)
	}
	if _, err := f.w.Undo(t.Context(), &UndoOptions{Choice: KeepMine}); err != nil {
		t.Fatal(err)
	}
	if f.read("a") != "user\n" || f.read("b") != "1\n" {
		t.Error("the undo should have kept a and brought back b")
	}
}

// Hard links are replaced, never written through, and untouched files keep their
// times.
func TestHardLinksAndTimes(t *testing.T) {
	f := newFixture(t)
	outside := filepath.Join(testenv.TempDir(t), "outside")
	f.write("a", "0\n", "b", "b\n")
	c1 := f.before("c", 1)
	must(t, os.WriteFile(outside, []byte("1\n"), 0o644))
	f.remove("a")
	must(t, os.Link(outside, f.path("a")))
	f.after("c", 1)
	past := time.Date(2001, 2, 3, 4, 5, 6, 700, time.UTC) // Windows counts in 100 ns
	must(t, os.Chtimes(f.path("b"), past, past))
	f.rewind(RewindRequest{To: c1.ID})
	if got, err := os.ReadFile(outside); err != nil || string(got) != "1\n" {
		t.Errorf("the other name of a is %q, %v", got, err)
	}
	if f.read("a") != "0\n" {
		t.Errorf("a is %q", f.read("a"))
	}
	if info, err := os.Stat(f.path("b")); err != nil || !info.ModTime().Equal(past) {
		t.Errorf("b has time %v, %v", info.ModTime(), err)
	}
}

// A tree with a bad path refuses the whole rewind.
func TestHostileTrees(t *testing.T) {
	bad := []string{".git", ".GIT", ".Git ", ".git.", "git~1", ".g\u200cit", ".stet-stage-x", ".STET-STAGE-x"}
	for _, name := range bad {
		f := newFixture(t)
		f.write("a", "0\n")
		f.save(Request{Conversation: "c"})
		content := blob.New([]byte("hostile"))
		must(t, f.blobs.Put(t.Context(), content))
		node, err := workspace.EncodeNode([]workspace.Entry{{Name: name, Kind: workspace.File, Mode: 0o755, Size: 7, ID: content.ID}})
		must(t, err)
		f.plant(blob.New(node))
		before := testenv.Snapshot(t, f.dir)
		if _, err := f.w.Rewind(t.Context(), RewindRequest{To: "c2", Choice: Theirs}, ""); !errors.Is(err, workspace.ErrBadPath) {
			t.Errorf("%q: %v, want ErrBadPath", name, err)
		}
		f.expect(before)
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x", "/etc/x", "a\x00b", strings.Repeat("n", 300)} {
		f := newFixture(t)
		f.write("a", "0\n")
		f.save(Request{Conversation: "c"})
		f.plant(rawNode(name))
		before := testenv.Snapshot(t, f.dir)
		if _, err := f.w.Rewind(t.Context(), RewindRequest{To: "c2", Choice: Theirs}, ""); err == nil {
			t.Errorf("%q was accepted", name)
		}
		f.expect(before)
	}
}

// rawNode encodes a node with one file of any name, past all checks: it writes a
// node with a name of the same length and puts the bad one in its place.
func rawNode(name string) blob.Blob {
	good := strings.Repeat("z", max(1, min(len(name), workspace.MaxName)))
	node, err := workspace.EncodeNode([]workspace.Entry{{Name: good, Kind: workspace.File, Mode: 0o644, Size: 1, ID: blob.Sum([]byte("x"))}})
	if err != nil {
		panic(err)
	}
	return blob.New([]byte(strings.Replace(string(node), good, name, 1)))
}

// plant makes a hostile node the tree of a second checkpoint.
func (f *fixture) plant(node blob.Blob) {
	f.t.Helper()
	must(f.t, f.blobs.Put(f.t.Context(), node))
	rec := f.save(Request{Conversation: "c"})
	rec.Tree = node.ID
	data, err := rec.encode()
	must(f.t, err)
	must(f.t, f.setRow(rec.ID, data))
}

// Plans have a stable JSON form.
func TestPlanJSON(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n")
	c1 := f.before("c", 1)
	f.write("a", "1\n2\n")
	f.after("c", 1)
	data, err := json.Marshal(f.plan(RewindRequest{To: c1.ID}))
	must(t, err)
	var got struct {
		Schema string `json:"schema"`
		To     struct {
			ID string `json:"id"`
		} `json:"to"`
		Token string `json:"plan_token"`
		Files []struct {
			Path, Action string
			Add, Del     int
		} `json:"files"`
		Untouched *int `json:"untouched"`
	}
	must(t, json.Unmarshal(data, &got))
	if got.Schema != PlanSchema || got.To.ID != c1.ID || got.Token == "" || got.Untouched == nil || len(got.Files) != 1 ||
		got.Files[0].Path != "a" || got.Files[0].Action != "restore" || got.Files[0].Add != 1 || got.Files[0].Del != 2 {
		t.Errorf("got %s", data)
	}
}

// A rewind brings back an ignore file together with the mode of a directory that is
// ignored by it and yet captured, since an agent touched what it holds.
func TestModeOfWhatIsIgnoredAgain(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "out/\n", "out/made", "0\n", "out/other", "0\n")
	want := testenv.Snapshot(t, f.dir)
	c1 := f.save(Request{Conversation: "c", Turn: 1, Side: Before, Touched: []string{"out/made"}})
	f.write(".gitignore", "")
	must(t, os.Chmod(f.path("out"), 0o700))
	f.after("c", 1)
	f.reopen()
	present := testenv.Snapshot(t, f.dir)
	f.rewind(RewindRequest{To: c1.ID})
	f.expect(want)
	must(t, undo(f))
	f.expect(present)
}
