package checkpoint

import "testing"

// leftOf lists what a plan leaves, with the reasons.
func leftOf(p *Plan) []string {
	var left []string
	for _, a := range p.Left() {
		left = append(left, string(a.Why)+" "+a.Path)
	}
	return left
}

// A rewind removes the rule that hid a file, so that the file is in sight and differs
// from the checkpoint: it is named.
func TestRewindNamesWhatItUncovers(t *testing.T) {
	for _, exact := range []bool{false, true} {
		f := newFixture(t)
		f.write("README", "1\n", "was/there", "1\n", ".git/info/exclude", "was/\n")
		c1 := f.before("c", 1)
		f.write(".gitignore", "*.log\nout/\n", "new.log", "1\n", "out/a", "1\n", "out/b", "1\n")
		f.after("c", 1)
		f.write("kept.tmp", "1\n")
		done := f.rewind(RewindRequest{To: c1.ID, Exact: exact})
		want := []string{"yours kept.tmp", "ignored new.log", "ignored out"}
		if exact {
			want = want[1:]
		}
		same(t, "left", leftOf(done.Plan), want)
		if exact { // the plan had them
			same(t, "uncovered", done.Uncovered, nil)
		} else {
			same(t, "uncovered", done.Uncovered, []string{"new.log", "out"})
		}
		if f.read("new.log") != "1\n" || f.read("out/b") != "1\n" {
			t.Error("a file that was never captured changed")
		}
		// Nobody knows who made what came in sight, so a plain rewind leaves it.
		want = []string{"unknown new.log", "unknown out", "unknown out/a", "unknown out/b"}
		if !exact {
			want = append([]string{"yours kept.tmp"}, want...)
		}
		same(t, "left afterwards", leftOf(f.plan(RewindRequest{To: c1.ID})), want)
		must(t, undo(f))
		if f.read("new.log") != "1\n" || f.read("out/b") != "1\n" {
			t.Error("a file that was never captured changed by an undo")
		}
	}
}

// An exact rewind names the ignored files that came since, but not those that were
// there, and names them only where it is asked to look.
func TestExactRewindNamesIgnoredFilesThatCame(t *testing.T) {
	f := newFixture(t)
	f.write("README", "1\n", ".gitignore", "*.log\nout/\n", "old.log", "1\n", "out/a", "1\n")
	c1 := f.before("c", 1)
	f.write("README", "2\n", "new.log", "1\n", "out/b", "1\n", "sub/new.log", "1\n")
	f.after("c", 1)
	same(t, "left of an exact rewind", leftOf(f.plan(RewindRequest{To: c1.ID, Exact: true})), []string{"ignored new.log", "holds sub", "ignored sub/new.log"})
	same(t, "left of one of README", leftOf(f.plan(RewindRequest{To: c1.ID, Exact: true, Paths: []string{"README"}})), nil)
	same(t, "left of a plain one", leftOf(f.plan(RewindRequest{To: c1.ID})), []string{"holds sub"})

	// They come and go while somebody thinks about the plan.
	p := f.plan(RewindRequest{To: c1.ID, Exact: true})
	f.write("newer.log", "1\n")
	if _, err := f.w.Rewind(t.Context(), p.Request(), p.Token); err != nil {
		t.Error(err)
	}
}
