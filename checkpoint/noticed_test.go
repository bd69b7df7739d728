package checkpoint

import (
	"context"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Ignored files that change during a turn are named, by the checkpoint that ends it
// and by every plan that takes the turn back, or captured before, as Options say.
func TestIgnoredFilesThatChangeInATurn(t *testing.T) {
	turn := func(t *testing.T, mode IgnoredFiles) (*fixture, *Record, *Result) {
		f := newFixture(t)
		f.opts.Ignored = mode
		f.reopen()
		f.write(".gitignore", ".env\ncache/\n*.log\n", ".env", "SECRET=1\n", "cache/small", "1\n", "cache/deep/x", "1\n",
			"same.log", "1\n", "large.log", strings.Repeat("x", 70<<10), "README", "1\n")
		c1 := f.before("c", 1)
		f.write(".env", "SECRET=2\n", "large.log", "y", "cache/deep/x", "2\n", "new.log", "1\n", "README", "2\n")
		f.remove("cache/small")
		res, err := f.w.Checkpoint(t.Context(), Request{Conversation: "c", Turn: 1, Side: After, MessageID: "c-m1", Auto: true})
		must(t, err)
		return f, c1, res
	}
	kept := func(p *Plan) []string {
		var out []string
		for _, a := range p.Left() {
			out = append(out, a.Path+": "+string(a.Why))
		}
		return out
	}
	t.Run("noticed", func(t *testing.T) {
		f, c1, res := turn(t, "")
		want := []string{".env", "cache/small", "large.log"}
		same(t, "changed", res.IgnoredChanged, want)
		again, err := f.w.s.IgnoredChanges(t.Context(), res.Record)
		must(t, err)
		same(t, "read back", again, want)
		p := f.plan(RewindRequest{To: c1.ID})
		same(t, "left", kept(p), []string{".env: ignored", "cache/small: ignored", "large.log: ignored"})
		if a := p.Actions[slices.IndexFunc(p.Actions, func(a Action) bool { return a.Path == ".env" })]; a.Reason != "ignored, changed in turn 1 and not captured before" {
			t.Errorf(".env: %q", a.Reason)
		}
		f.rewind(RewindRequest{To: c1.ID})
		if got := f.read(".env"); got != "SECRET=2\n" {
			t.Errorf(".env is %q", got)
		}
		if e, err := lookup(t.Context(), f.blobs, c1.Tree, ".env"); e != nil || err != nil {
			t.Errorf("the checkpoint has .env: %v, %v", e, err)
		}
		same(t, "one path", kept(f.plan(RewindRequest{To: c1.ID, Paths: []string{"README"}})), nil)
	})
	t.Run("captured", func(t *testing.T) {
		f, c1, res := turn(t, CaptureIgnored)
		same(t, "changed", res.IgnoredChanged, []string{"large.log"})
		same(t, "plan", lines(f.plan(RewindRequest{To: c1.ID})), []string{"restore .env", "restore README", "create cache/small", "keep large.log"})
		f.rewind(RewindRequest{To: c1.ID})
		if got := f.read(".env") + f.read("cache/small"); got != "SECRET=1\n1\n" {
			t.Errorf("back are %q", got)
		}
		if _, err := os.Lstat(f.path("new.log")); err != nil {
			t.Error(err)
		}
	})
	t.Run("off", func(t *testing.T) {
		f, c1, res := turn(t, PassIgnored)
		same(t, "changed", res.IgnoredChanged, nil)
		same(t, "left", kept(f.plan(RewindRequest{To: c1.ID})), nil)
	})
}

// A git repository in the workspace that a turn deletes or replaces is named, whatever is
// done about ignored files: its files come back, its commits do not.
func TestRepositoryThatATurnDeletes(t *testing.T) {
	for _, mode := range []IgnoredFiles{NoticeIgnored, CaptureIgnored, PassIgnored} {
		f := newFixture(t)
		f.opts.Ignored = mode
		f.reopen()
		f.write(".git/HEAD", "x\n", "lib/.git/HEAD", "x\n", "lib/file", "1\n", "again/.git/HEAD", "x\n", "stays/.git/HEAD", "x\n",
			".gitignore", "vendor/\n", "vendor/.git/HEAD", "x\n")
		c1 := f.before("c", 1)
		f.remove("lib", "vendor/.git")
		must(t, os.Rename(f.path("again"), f.path("moved")))
		f.write("again/.git/HEAD", "another\n", "stays/.git/index", "1\n", "made", "1\n")
		res, err := f.w.Checkpoint(t.Context(), Request{Conversation: "c", Turn: 1, Side: After, MessageID: "c-m1", Auto: true})
		must(t, err)
		same(t, "lost", res.IgnoredChanged, []string{"again/.git", "lib/.git", "vendor/.git"})
		p := f.plan(RewindRequest{To: c1.ID})
		var left []string
		for _, a := range p.Left() {
			left = append(left, a.Path+": "+string(a.Why)+": "+a.Reason)
		}
		const reason = ": repository: git repository, deleted or replaced in turn 1 and never captured"
		same(t, "left", left, []string{"again/.git" + reason, "lib/.git" + reason, "moved: holds: holds files that are not captured", "vendor/.git" + reason})
		f.rewind(RewindRequest{To: c1.ID})
		if f.read("lib/file") != "1\n" || f.read("again/.git/HEAD") != "another\n" {
			t.Error("the rewind restored other files")
		}
	}
}

// The end of a turn finds where the turn began, however many checkpoints were made
// since and whatever message its agent names.
func TestIgnoredFilesOfTurnsWithFarBeginnings(t *testing.T) {
	for name, test := range map[string]struct {
		between func(f *fixture)
		message string
	}{
		"another message":  {func(*fixture) {}, "another"},
		"long":             {func(f *fixture) { f.saveOften(Request{Conversation: "c", Turn: 1, MessageID: "m"}) }, "m"},
		"long, of others":  {func(f *fixture) { f.saveOften(Request{}) }, "m"},
		"ended in parts":   {func(f *fixture) { f.save(Request{Conversation: "c", Turn: 1, Side: After, Unfinished: true}) }, "m"},
		"in background":    {func(f *fixture) { f.before("c", 2); f.after("c", 2) }, "m"},
		"beside another":   {func(f *fixture) { f.before("d", 1); f.after("d", 1) }, "m"},
		"after checkpoint": {func(f *fixture) { f.save(Request{Conversation: "c"}) }, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write(".gitignore", "*.env\n", "a.env", "1\n", "b.env", "1\n", ".git/HEAD", "x\n")
			c1 := f.save(Request{Conversation: "c", Turn: 1, Side: Before, MessageID: "m"})
			test.between(f)
			f.write("a.env", "2\n")
			f.remove(".git")
			res, err := f.w.Checkpoint(t.Context(), Request{Conversation: "c", Turn: 1, Side: After, MessageID: test.message})
			must(t, err)
			same(t, "changed", res.IgnoredChanged, []string{"a.env", ".git"})
			changed, err := f.w.s.IgnoredChanges(t.Context(), res.Record)
			must(t, err)
			same(t, "read back", changed, []string{"a.env", ".git"})
			same(t, "left", f.reasons(RewindRequest{To: c1.ID}), []string{
				".git: git repository, deleted or replaced in turn 1 and never captured",
				"a.env: ignored, changed in turn 1 and not captured before",
			})
			// A turn without a beginning is not blamed for what changed since an earlier one.
			last := f.save(Request{Conversation: "c", Turn: 3, Side: After, MessageID: "m"})
			changed, err = f.w.s.IgnoredChanges(t.Context(), last)
			must(t, err)
			same(t, "of a turn that nobody saw begin", changed, nil)
		})
	}
}

// What changed since the beginning of a turn that nothing ended is named, without a claim
// that the turn did it.
func TestIgnoredFilesOfTurnsWithoutEnd(t *testing.T) {
	turn := hold("c", 1, 1)
	change := func(f *fixture) {
		f.write("a.env", "2\n")
		f.remove("b.env", ".git")
	}
	for name, proceed := range map[string]func(f *fixture) string{
		"running": func(f *fixture) string { change(f); return "c1" },
		"killed":  func(f *fixture) string { change(f); f.processes(); return "c1" },
		"killed later": func(f *fixture) string {
			f.save(turn.at(NoSide))
			change(f)
			f.save(turn.at(NoSide))
			f.processes()
			return "c1"
		},
		"back to its middle": func(f *fixture) string {
			f.save(turn.at(NoSide))
			change(f)
			f.save(turn.at(NoSide))
			f.processes()
			return "c2"
		},
		"back to the user's checkpoint in it": func(f *fixture) string {
			f.save(Request{})
			change(f)
			f.save(turn.at(NoSide))
			f.processes()
			return "c2"
		},
		"back to its last": func(f *fixture) string {
			f.save(turn.at(NoSide))
			change(f)
			f.processes()
			return "c2"
		},
		"seen as killed": func(f *fixture) string {
			change(f)
			f.processes()
			f.save(Request{})
			return "c1"
		},
		"next turn": func(f *fixture) string {
			change(f)
			f.before("c", 2)
			f.write("user.env", "2\n")
			return "c1"
		},
		"next turn ended": func(f *fixture) string {
			change(f)
			f.before("c", 2)
			f.after("c", 2)
			f.write("user.env", "2\n")
			return "c1"
		},
		"other turn": func(f *fixture) string {
			change(f)
			f.before("d", 1)
			f.after("d", 1)
			return "c1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.processes(1)
			f.write(".gitignore", "*.env\n", "a.env", "1\n", "b.env", "1\n", "same.env", "1\n", "user.env", "1\n", ".git/HEAD", "x\n")
			f.save(turn.at(Before))
			to := proceed(f)
			want := []string{
				".git: git repository, deleted or replaced since turn 1 began and never captured",
				"a.env: ignored, changed since turn 1 began and not captured before",
				"b.env: ignored, changed since turn 1 began and not captured before",
			}
			if name == "next turn" {
				want = append(want, "user.env: ignored, changed since turn 2 began and not captured before")
			}
			req := RewindRequest{To: to, Conversation: "c"}
			same(t, "left", f.reasons(req), want)
			for _, a := range f.plan(req).Left() {
				if a.Writer.Class != ByUnseen || a.Writer.Turn != 0 {
					t.Errorf("%s was written by %+v", a.Path, a.Writer)
				}
			}
			if done := f.rewind(req); !done.Plan.Partial() {
				t.Error("the rewind says that it left nothing")
			}
		})
	}
}

// A look at the last checkpoint of a turn that nothing ended names what changed since the
// turn began; of one that ended, what changed in it.
func TestIgnoredFilesSinceTheLastCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "*.env\n", "a.env", "1\n", "b.env", "1\n", ".git/HEAD", "x\n")
	changes := func(what string, rec *Record, want ...string) {
		t.Helper()
		got, err := f.w.s.IgnoredChanges(t.Context(), rec)
		must(t, err)
		same(t, what, got, want)
	}
	begin := f.before("c", 1)
	changes("at once", begin)
	f.write("a.env", "2\n")
	changes("running", begin, "a.env")
	middle := f.save(Request{Conversation: "c", Turn: 1, Auto: true})
	f.remove(".git")
	changes("in its middle", middle, "a.env", ".git")
	end := f.after("c", 1)
	f.write("b.env", "2\n")
	changes("ended", end, "a.env", ".git")
	changes("by hand", f.save(Request{}))
	changes("by hand, of the conversation", f.save(Request{Conversation: "c", Turn: 1}))
	changes("next turn", f.before("c", 2))
}

// An ignored file that changed after the user's own checkpoint, in a turn at work, is named.
func TestIgnoredFilesAfterTheUsersCheckpointInATurn(t *testing.T) {
	f := newFixture(t)
	f.processes(1)
	f.write(".gitignore", "*.env\n", "a.env", "1\n", "f", "0\n")
	f.save(hold("c", 1, 1).at(Before))
	f.save(Request{})
	f.write("a.env", "2\n", "f", "1\n")
	same(t, "left", f.reasons(RewindRequest{To: "c2", Conversation: "c"}),
		[]string{"a.env: ignored, changed since turn 1 began and not captured before"})
}

// A rewind needs no checkpoint from before its target.
func TestRewindBesideEarlierDamage(t *testing.T) {
	for name, side := range map[string]Side{"before a turn": Before, "no side": NoSide, "after a turn": After} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("f", "0\n")
			old := f.save(Request{})
			to := f.save(Request{Conversation: "c", Turn: 1, Side: side})
			f.write("f", "1\n")
			f.save(Request{Conversation: "c", Turn: 2, Side: After})
			must(t, f.setRow(old.ID, []byte{0xff}))
			same(t, "plan", lines(f.plan(RewindRequest{To: to.ID})), []string{"restore f"})
		})
	}
}

func TestRewindIntoATurnWithADamagedBeginning(t *testing.T) {
	f := newFixture(t)
	f.write("f", "0\n")
	old := f.save(Request{Conversation: "c", Turn: 1, Side: Before})
	to := f.save(Request{})
	f.write("f", "1\n")
	f.save(Request{Conversation: "c", Turn: 1})
	must(t, f.setRow(old.ID, []byte{0xff}))
	same(t, "plan", lines(f.plan(RewindRequest{To: to.ID, Conversation: "c"})), []string{"restore f"})
}

// The end of a turn does not depend on a checkpoint of another workspace.
func TestTurnEndsBesideDamageElsewhere(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "*.env\n", "a.env", "1\n")
	f.save(Request{Conversation: "c", Turn: 1, Side: Before})
	const other = "7zzzzzzzzzzzzzzzzzzzzzzzzz"
	must(t, f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{
		{Key: keyspace.ConversationCheckpoint("c", other)},
		{Key: keyspace.Checkpoint(other), Value: []byte{0xff}},
	}}))
	_, err := f.w.Checkpoint(t.Context(), Request{Conversation: "c", Turn: 1, Side: After})
	must(t, err)
}

// The beginnings of many turns without an end are found in one pass.
func TestPlanOverManyTurnsWithoutSides(t *testing.T) {
	reads := func(turns int) int {
		f := newFixture(t)
		scans := &countedScans{Store: f.rows}
		f.rows = scans
		f.reopen()
		f.write("f", "0\n")
		first := f.save(Request{Conversation: "c", Turn: 1})
		for i := range turns {
			f.save(Request{Conversation: "c", Turn: uint64(i) + 2, Paths: []string{"f"}})
		}
		scans.rows = 0
		f.plan(RewindRequest{To: first.ID})
		return scans.rows
	}
	few, many := reads(50), reads(200)
	if few == 0 || many > 6*few {
		t.Errorf("a plan over 50 turns reads %d rows, over 200 turns %d", few, many)
	}
}

// countedScans counts the rows that scans return.
type countedScans struct {
	kv.Store
	rows int
}

func (c *countedScans) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range c.Store.Scan(ctx, r, opts) {
			c.rows++
			if !yield(row, err) {
				return
			}
		}
	}
}

// saveOften makes more checkpoints than are read at once.
func (f *fixture) saveOften(req Request) {
	f.t.Helper()
	req.Paths = []string{".gitignore"}
	for range 100 {
		f.save(req)
	}
}

// reasons lists what a plan leaves alone, and why.
func (f *fixture) reasons(req RewindRequest) []string {
	f.t.Helper()
	var out []string
	for _, a := range f.plan(req).Left() {
		out = append(out, a.Path+": "+a.Reason)
	}
	return out
}
