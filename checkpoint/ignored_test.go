package checkpoint

import (
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// What a checkpoint holds comes back although a rule ignores it by now: rules
// decide what is newly captured, never what may be restored.
func TestIgnoredLaterAndRestored(t *testing.T) {
	for name, agent := range map[string]func(f *fixture){
		"ignored and removed at once": func(f *fixture) {
			f.write(".gitignore", "gen/\n*.log\n")
			f.remove("gen", "a.log")
		},
		"ignored, seen, then removed": func(f *fixture) {
			f.write(".gitignore", "gen/\n*.log\n")
			f.save(Request{Conversation: "c", Turn: 1, Auto: true})
			f.remove("gen", "a.log")
		},
		"removed in part": func(f *fixture) {
			f.write(".gitignore", "gen/\n*.log\n")
			f.save(Request{Conversation: "c", Turn: 1, Auto: true})
			f.remove("gen/sub/y", "a.log")
			f.write("gen/x", "agent's\n")
		},
		"ignored and changed": func(f *fixture) {
			f.write(".gitignore", "gen/\n*.log\n", "gen/x", "agent's\n", "a.log", "agent's\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reopen := range []bool{false, true} {
				f := newFixture(t)
				f.write("gen/x", "1\n", "gen/sub/y", "2\n", "a.log", "3\n", "README", "4\n")
				c1 := f.before("c", 1)
				want := testenv.Snapshot(t, f.dir)
				agent(f)
				f.after("c", 1)
				if reopen { // by a process that has no index
					must(t, f.w.dropIndex())
					f.reopen()
				}
				done := f.rewind(RewindRequest{To: c1.ID})
				f.expect(want)
				for _, a := range done.Plan.Actions {
					if !a.Changes() {
						t.Errorf("%s %s (%s)", a.Kind, a.Path, a.Reason)
					}
				}
				must(t, undo(f))
				f.rewind(RewindRequest{To: c1.ID})
				f.expect(want)
			}
		})
	}
}

// An ignored file that nobody captured lies where a file of the checkpoint comes
// back. It is read and saved first, and since nobody saw it written, it is a
// conflict.
func TestIgnoredFileInTheWay(t *testing.T) {
	f := newFixture(t)
	f.write("gen/x", "1\n", "README", "4\n")
	c1 := f.before("c", 1)
	f.remove("gen")
	f.write(".gitignore", "gen/\n")
	f.after("c", 1)
	f.write("gen/x", "unseen\n", "gen/other", "unseen\n")
	same(t, "plan", lines(f.plan(RewindRequest{To: c1.ID})), []string{"delete .gitignore", "conflict gen/x"})
	f.rewind(RewindRequest{To: c1.ID, Choice: Theirs})
	if got := f.read("gen/x"); got != "1\n" {
		t.Errorf("gen/x is %q", got)
	}
	must(t, undo(f))
	if got := f.read("gen/x"); got != "unseen\n" {
		t.Errorf("after undo gen/x is %q", got)
	}
	if got := f.read("gen/other"); got != "unseen\n" {
		t.Errorf("gen/other is %q", got)
	}
}

// A process whose index is older than the latest checkpoint keeps what that has.
func TestStaleIndexKeepsWhatIsIgnoredLater(t *testing.T) {
	f := newFixture(t)
	f.write("README", "1\n")
	f.save(Request{})
	f.opts.IndexDir = ""
	other, err := New(f.blobs, f.rows, &f.opts).Open(t.Context(), f.dir)
	must(t, err)
	f.write("gen/x", "1\n")
	if _, err := other.Checkpoint(t.Context(), Request{}); err != nil {
		t.Fatal(err)
	}
	f.write(".gitignore", "gen/\n")
	rec := f.save(Request{})
	if e, err := lookup(t.Context(), f.blobs, rec.Tree, "gen/x"); err != nil || e == nil {
		t.Errorf("gen/x: %v, %v, want it captured", e, err)
	}
}
