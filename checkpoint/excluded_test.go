package checkpoint

import (
	"testing"

	"github.com/stet-dev/stet/workspace"
)

// A rule of the options decides what is captured, not what is restored: a rewind brings
// back what an earlier checkpoint has, and keeps for undo what it replaces.
func TestExcludedLaterAndRestored(t *testing.T) {
	f := newFixture(t)
	f.write("a.log", "1\n", "data/x", "1\n", "data/y", "1\n", "b", "1\n")
	c1 := f.before("c", 1)
	f.opts.Scan.Exclude = []string{"*.log", "/data/"}
	f.reopen()
	f.write("a.log", "2\n", "data/x", "2\n", "b", "2\n")
	f.after("c", 1)
	p := f.plan(RewindRequest{To: c1.ID, Exact: true})
	same(t, "plan", lines(p), []string{"restore a.log", "restore b", "restore data/x"})
	f.rewind(RewindRequest{To: c1.ID, Exact: true})
	f.holds("a.log", "1\n", "data/x", "1\n", "data/y", "1\n", "b", "1\n")
	if _, err := f.w.Undo(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.holds("a.log", "2\n", "data/x", "2\n", "data/y", "1\n", "b", "2\n")

	// The next checkpoint leaves them out again, and nobody removed them.
	f.write("b", "3\n")
	res, err := f.w.Checkpoint(t.Context(), Request{})
	must(t, err)
	for _, path := range []string{"a.log", "data/x"} {
		e, err := lookup(t.Context(), f.blobs, res.Record.Tree, path)
		must(t, err)
		if e != nil {
			t.Errorf("the checkpoint has %s", path)
		}
	}
	f.holds("a.log", "2\n", "data/x", "2\n", "data/y", "1\n", "b", "3\n")
}

// Secrets files that a turn changes are noticed, and captured in no mode of ignored files.
func TestSecretsFilesThatChangeInATurn(t *testing.T) {
	for _, mode := range []IgnoredFiles{NoticeIgnored, CaptureIgnored} {
		f := newFixture(t)
		f.opts.Ignored = mode
		f.opts.Scan.Secrets, f.opts.Scan.Exclude = workspace.SecretFiles, []string{"*.tmp"}
		f.reopen()
		f.write(".gitignore", "cache/\n", ".env", "1\n", "cache/.env", "1\n", "x.tmp", "1\n", "README", "1\n")
		c1 := f.before("c", 1)
		f.write(".env", "2\n", "cache/.env", "2\n", "x.tmp", "2\n", "README", "2\n")
		res, err := f.w.Checkpoint(t.Context(), Request{Conversation: "c", Turn: 1, Side: After, MessageID: "c-m1", Auto: true})
		must(t, err)
		same(t, string(mode), res.IgnoredChanged, []string{".env", "cache/.env", "x.tmp"})
		var left []string
		for _, a := range f.plan(RewindRequest{To: c1.ID}).Left() {
			left = append(left, a.Path+": "+string(a.Why)+", "+a.About())
		}
		same(t, string(mode), left, []string{".env: secret, secrets file", "cache/.env: ignored, ignored", "x.tmp: excluded, excluded"})
		f.rewind(RewindRequest{To: c1.ID})
		f.holds(".gitignore", "cache/\n", ".env", "2\n", "cache/.env", "2\n", "x.tmp", "2\n", "README", "1\n")
	}
}

// holds checks the contents of files.
func (f *fixture) holds(pairs ...string) {
	f.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := f.read(pairs[i]); got != pairs[i+1] {
			f.t.Errorf("%s is %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}
