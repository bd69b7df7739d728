package checkpoint

import (
	"os"
	"slices"
	"strings"
	"testing"
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
