package blame_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// fixture is a workspace over a store in memory.
type fixture struct {
	*blame.Reader
	t       *testing.T
	rows    kv.Store
	blobs   blob.Store
	service *checkpoint.Service
	convs   *conversation.Store
	w       *checkpoint.Workspace
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	memory := memblob.New()
	f := &fixture{t: t, blobs: blob.Checked(memory), rows: memkv.New(memory)}
	f.service, f.convs = checkpoint.New(f.blobs, f.rows, nil), conversation.New(f.blobs, f.rows, nil)
	f.Reader = blame.New(f.blobs, f.service, f.convs)
	w, err := f.service.Open(t.Context(), testenv.TempDir(t))
	f.must(err)
	f.w = w
	t.Cleanup(func() { f.must(w.Close()) })
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.w.Path(), name)
	f.must(os.MkdirAll(filepath.Dir(path), 0o755))
	f.must(os.WriteFile(path, []byte(text), 0o600))
}

func (f *fixture) save(req checkpoint.Request) *checkpoint.Record {
	f.t.Helper()
	res, err := f.w.Checkpoint(f.t.Context(), req)
	f.must(err)
	return res.Record
}

// turn lets a conversation write a file in a turn.
func (f *fixture) turn(conv string, n uint64, name, text string) *checkpoint.Record {
	f.t.Helper()
	f.save(checkpoint.Request{Conversation: conv, Turn: n, Side: checkpoint.Before})
	f.write(name, text)
	return f.save(checkpoint.Request{Conversation: conv, Turn: n, Side: checkpoint.After})
}

func (f *fixture) now() *checkpoint.Record {
	f.t.Helper()
	res, err := f.w.Present(f.t.Context())
	f.must(err)
	rec, err := f.w.Unsaved(f.t.Context(), res.Tree)
	f.must(err)
	return rec
}

// who writes the origins of a file in one line, such as "you c/1 c/1".
func (f *fixture) who(at *checkpoint.Record, name string) string {
	f.t.Helper()
	file, err := f.File(f.t.Context(), at, name)
	f.must(err)
	var out []string
	for _, l := range file.Lines {
		switch o := file.Origins[l.Origin]; o.Kind {
		case blame.Agent:
			out = append(out, fmt.Sprintf("%s/%d", o.Writer.Conversation, o.Writer.Turn))
		case blame.Several:
			out = append(out, strings.Join(o.Writer.Among, "+"))
		case blame.Unknown:
			out = append(out, string(o.Why))
		default:
			out = append(out, string(o.Kind))
		}
	}
	return strings.Join(out, " ")
}

func (f *fixture) want(at *checkpoint.Record, name, want string) {
	f.t.Helper()
	if got := f.who(at, name); got != want {
		f.t.Errorf("%s is by %s, want %s", name, got, want)
	}
}

func (f *fixture) forget(rec *checkpoint.Record) {
	f.t.Helper()
	b := &kv.Batch{Delete: []string{keyspace.Checkpoint(rec.ID), keyspace.WorkspaceCheckpoint(rec.Workspace, rec.ID)}}
	if rec.Conversation != "" {
		b.Delete = append(b.Delete, keyspace.ConversationCheckpoint(rec.Conversation, rec.ID))
	}
	f.must(f.rows.Commit(f.t.Context(), b))
}

func TestWhoWroteWhat(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "a\nb\nc\n")
	f.turn("c", 1, "main.go", "a\nb2\nc\n")
	f.write("main.go", "a\nb2\nc\nd\n") // by the user
	f.turn("d", 1, "main.go", "z\na\nb2\nc\nd\n")
	f.want(f.now(), "main.go", "d/1 you c/1 you you")

	f.save(checkpoint.Request{Conversation: "d", Turn: 2, Side: checkpoint.Before})
	f.write("main.go", "z\na\nb2\nc\nd\ne\n")
	f.want(f.now(), "main.go", "d/1 you c/1 you you d/2") // its turn goes on
}

// A rewind that merges keeps the user's lines, and brings back those of its target.
func TestMergedRewindsBringLinesBack(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	first := f.turn("c", 1, "a", "1\n2\nc1\n4\n5\n6\n7\n8\n9\n")
	f.turn("c", 2, "a", "1\n2\nc2\n4\n5\n6\n7\n8\n9\n")
	f.write("a", "1\n2\nc2\n4\n5\n6\n7\n8\n9\nmine\n")
	done, err := f.w.Rewind(t.Context(), checkpoint.RewindRequest{To: first.ID, Choice: checkpoint.Merge, Scope: checkpoint.FilesOnly}, "")
	f.must(err)
	f.want(done.Record, "a", "you you c/1 you you you you you you you")

	_, err = f.w.Undo(t.Context(), nil)
	f.must(err)
	f.want(f.now(), "a", "you you c/2 you you you you you you you")
}

// Taking one turn out brings back the lines that it removed, with their first origin.
func TestTakingOneTurnOut(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	f.turn("c", 1, "a", "1\nc1\n3\n4\n5\n6\n7\n8\n9\n")
	f.turn("c", 2, "a", "1\nc2\n3\n4\n5\n6\n7\n8\n9\n")
	f.turn("c", 3, "a", "1\nc2\n3\n4\n5\n6\n7\n8\nc3\n")
	_, err := f.w.Rewind(t.Context(), checkpoint.RewindRequest{Conversation: "c", OnlyTurn: 2, Choice: checkpoint.Merge}, "")
	f.must(err)
	f.want(f.now(), "a", "you c/1 you you you you you you c/3")
}

func TestRenames(t *testing.T) {
	f := newFixture(t)
	f.write("src/a.go", "1\n2\n3\n4\n")
	f.turn("c", 1, "src/a.go", "1\n2\nc1\n4\n")
	f.save(checkpoint.Request{Conversation: "c", Turn: 2, Side: checkpoint.Before})
	f.must(os.Rename(filepath.Join(f.w.Path(), "src"), filepath.Join(f.w.Path(), "lib"))) // a directory
	f.write("other.go", "quite\nanother\nfile\n")
	moved := f.save(checkpoint.Request{Conversation: "c", Turn: 2, Side: checkpoint.After})
	f.want(moved, "lib/a.go", "you you c/1 you")
	f.want(moved, "other.go", "c/2 c/2 c/2")

	f.save(checkpoint.Request{Conversation: "c", Turn: 3, Side: checkpoint.Before})
	f.must(os.Remove(filepath.Join(f.w.Path(), "lib/a.go")))
	f.write("lib/b.go", "1\n2\nc1\nc3\n") // moved and changed
	f.save(checkpoint.Request{Conversation: "c", Turn: 3, Side: checkpoint.After})
	f.want(f.now(), "lib/b.go", "you you c/1 c/3")
}

func TestSeveralAgentsAtOnce(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n")
	f.save(checkpoint.Request{Conversation: "c", Turn: 1, Side: checkpoint.Before})
	f.save(checkpoint.Request{Conversation: "d", Turn: 1, Side: checkpoint.Before})
	f.write("a", "1\n2\n")
	f.write("b", "1\n")
	f.save(checkpoint.Request{Conversation: "d", Turn: 1, Side: checkpoint.After, Touched: []string{"b"}})
	f.save(checkpoint.Request{Conversation: "c", Turn: 1, Side: checkpoint.After})
	f.want(f.now(), "a", "you c+d")
	f.want(f.now(), "b", "d/1")
}

// Where the history ends, blame says so and does not guess.
func TestForgottenCheckpoints(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n")
	one := f.turn("c", 1, "a", "1\n2\n")
	before, err := f.service.Get(t.Context(), one.Parent)
	f.must(err)
	two := f.turn("c", 2, "a", "1\n2\n3\n")
	f.turn("c", 3, "a", "1\n2\n3\n4\n")
	f.want(f.now(), "a", "you c/1 c/2 c/3")
	f.forget(two)
	f.want(f.now(), "a", "you c/1 forgotten c/3") // seen by the one before turn 3
	f.forget(before)
	f.forget(one)
	f.want(f.now(), "a", "forgotten forgotten forgotten c/3")
	file, err := f.File(t.Context(), f.now(), "a")
	f.must(err)
	if file.Forgotten != 2 || !file.Origins[0].First {
		t.Errorf("%d checkpoints are gone, want 2", file.Forgotten)
	}
}

func TestTheFirstCheckpointAfterATurn(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n")
	f.save(checkpoint.Request{Conversation: "c", Turn: 1, Side: checkpoint.After})
	f.want(f.now(), "a", "before-the-first-checkpoint")
}

func TestFilesThatWereNotCaptured(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "a\n")
	f.write("a", "1\n")
	f.save(checkpoint.Request{})
	if _, err := f.File(t.Context(), f.now(), "a"); !errors.Is(err, blame.ErrNoFile) {
		t.Errorf("an ignored file: %v", err)
	}
	f.write(".gitignore", "\n")
	f.turn("c", 1, "a", "1\n2\n")
	f.want(f.now(), "a", "not-captured c/1")
}

func TestWhatHasNoLines(t *testing.T) {
	f := newFixture(t)
	f.write("dir/a", "1\n")
	f.write("binary", "a\x00b\n")
	f.write("gone", "1\n")
	f.write("empty", "")
	f.must(os.Symlink("dir/a", filepath.Join(f.w.Path(), "link")))
	f.save(checkpoint.Request{})
	f.must(os.Remove(filepath.Join(f.w.Path(), "gone")))
	last := f.save(checkpoint.Request{})
	for name, want := range map[string]error{
		"dir": blame.ErrNoLines, ".": blame.ErrNoLines, "binary": blame.ErrNoLines, "link": blame.ErrNoLines,
		"gone": blame.ErrNoFile, "never": blame.ErrNoFile, "dir/a/b": blame.ErrNoFile, "../a": blame.ErrNoFile, "": blame.ErrNoFile,
	} {
		if _, err := f.File(t.Context(), last, name); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	if _, err := f.File(t.Context(), last, "gone"); err == nil || !strings.Contains(err.Error(), "removed at c2") {
		t.Errorf("a removed file: %v", err)
	}
	file, err := f.File(t.Context(), last, "empty")
	if err != nil || len(file.Lines) != 0 {
		t.Errorf("an empty file: %v, %v", file, err)
	}
}

// A file that was binary for a while begins again after it.
func TestBinaryForAWhile(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n")
	f.turn("c", 1, "a", "1\x00\n")
	f.turn("c", 2, "a", "1\n2\n")
	f.want(f.now(), "a", "c/2 c/2")
}

// TestOwnHistory replays the history of a file of this repository as turns, and compares
// with git blame.
func TestOwnHistory(t *testing.T) {
	const name = "Makefile"
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"-C", testenv.Root()}, args...)...)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	log, err := git("log", "--first-parent", "--format=%H", "--reverse", "-n", "60", "--", name)
	commits := strings.Fields(log)
	if err != nil || len(commits) < 3 {
		t.Skip("there is no history of git here")
	}
	f := newFixture(t)
	f.save(checkpoint.Request{})
	for i, commit := range commits {
		text, err := git("show", commit+":"+name)
		if err != nil {
			t.Skip(err)
		}
		f.turn("git", uint64(i+1), name, text+"\n")
	}
	args := []string{"blame", "-s", "--abbrev=40", commits[len(commits)-1], "--", name}
	want, err := git(args...)
	if err != nil {
		t.Skip(err)
	}
	file, err := f.File(t.Context(), f.now(), name)
	f.must(err)
	same := 0
	for i, line := range strings.Split(want, "\n") {
		turn := file.Origins[file.Lines[i].Origin].Writer.Turn
		if strings.HasPrefix(strings.TrimPrefix(line, "^"), commits[turn-1][:39]) {
			same++
		}
	}
	// Both may choose another of several equal lines, and git goes back before the first of
	// the commits.
	if all := len(file.Lines); same*10 < all*8 {
		t.Errorf("%d of %d lines have the commit of git", same, all)
	}
}

func TestImportedCheckpointsKnowNobody(t *testing.T) {
	f := newFixture(t)
	rec := &checkpoint.Record{Kind: checkpoint.Import, Number: 3}
	if _, err := f.File(t.Context(), rec, "a"); !errors.Is(err, blame.ErrNoLines) {
		t.Error(err)
	}
}
