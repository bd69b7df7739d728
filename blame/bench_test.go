package blame_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
)

// longFile is a file that is edited in one of ten turns.
type longFile struct {
	lines [][]byte
	rnd   *rand.Rand
	next  int
	fresh []byte // what the last edit wrote
}

func newLongFile(lines int) *longFile {
	f := &longFile{rnd: rand.New(rand.NewPCG(1, 2))}
	for range lines {
		f.lines = append(f.lines, f.line())
	}
	return f
}

func (f *longFile) line() []byte {
	f.next++
	return fmt.Appendf(nil, "\tline %d of a file that agents edit again and again\n", f.next)
}

// edit changes a few lines in two places.
func (f *longFile) edit() []byte {
	f.fresh = nil
	for range 2 {
		at := f.rnd.IntN(len(f.lines) - 4)
		f.lines = slices.Replace(f.lines, at, at+2, f.line(), f.line())
		f.fresh = append(f.fresh, bytes.Join(f.lines[at:at+2], nil)...)
	}
	return bytes.Join(f.lines, nil)
}

// BenchmarkBlame compares with git, which has a commit for each turn. The first blame reads
// everything; the others are those of people who look again, each after another turn that edits
// the file, with the same store and with one that was just opened.
func BenchmarkBlame(b *testing.B) {
	git, err := exec.LookPath("git")
	if err != nil {
		b.Skip("git is not there")
	}
	turns := testenv.Sizes(200, 1000, 10_000)
	const count, every, name = 2000, 10, "src/main.go"
	ctx, home := b.Context(), b.TempDir()
	db, err := stet.Open(ctx, home, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	dir, repo := b.TempDir(), b.TempDir()
	w, err := db.Checkpoints().Open(ctx, dir)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	stream := newGitStream(b, git, repo)
	file := newLongFile(count)
	talk, err := db.Conversations().Create(ctx, conversation.Info{ID: "c", Agent: "robot", Title: "a long talk"})
	if err != nil {
		b.Fatal(err)
	}
	save := func(turn int, path string, text []byte) {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(full, text, 0o600); err != nil {
			b.Fatal(err)
		}
		wrote := text
		if path == name && turn > 1 {
			wrote = file.fresh
		}
		say(b, talk, turn, path, wrote)
		req := checkpoint.Request{Conversation: "c", Turn: uint64(turn), MessageID: fmt.Sprint("m", turn), Side: checkpoint.After, Paths: []string{path}}
		if _, err := w.Checkpoint(ctx, req); err != nil {
			b.Fatal(err)
		}
		if turn <= turns {
			stream.commit(turn+1, path, text)
		}
	}
	save(1, name, file.edit())
	for turn := 2; turn <= turns; turn++ {
		if turn%every == 0 {
			save(turn, name, file.edit())
		} else {
			save(turn, fmt.Sprintf("other/f%d.txt", turn%50), fmt.Appendln(nil, turn))
		}
	}
	stream.close()
	look := func(db *stet.DB) (lines, words time.Duration) {
		began := time.Now()
		var rec *checkpoint.Record
		for latest, err := range db.Checkpoints().ListWorkspace(ctx, w.ID(), &checkpoint.ListOptions{Limit: 1}) {
			if err != nil {
				b.Fatal(err)
			}
			rec = latest
		}
		reader := blame.New(db.Blobs(), db.Checkpoints(), db.Conversations())
		found, err := reader.File(ctx, rec, name)
		if err != nil || len(found.Lines) != count {
			b.Fatal(err, len(found.Lines))
		}
		lines = time.Since(began)
		told, err := reader.Tell(ctx, found)
		if err != nil || !slices.ContainsFunc(told.Runs, func(r blame.Run) bool { return r.Call != nil }) {
			b.Fatal(err, len(told.Runs))
		}
		return lines, time.Since(began)
	}
	lookFresh := func() time.Duration {
		began := time.Now()
		db, err := stet.Open(ctx, home, nil)
		if err != nil {
			b.Fatal(err)
		}
		look(db)
		took := time.Since(began)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		return took
	}
	first, _ := look(db)
	var ours, all, fresh, theirs []time.Duration
	for turn := turns + 1; b.Loop(); turn++ {
		save(turn, name, file.edit())
		lines, words := look(db)
		ours, all, fresh = append(ours, lines), append(all, words), append(fresh, lookFresh())
		began := time.Now()
		if out, err := exec.Command(git, "-C", repo, "blame", "-s", "main", "--", name).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		theirs = append(theirs, time.Since(began))
	}
	slices.Sort(ours)
	slices.Sort(all)
	slices.Sort(fresh)
	slices.Sort(theirs)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	p50, git50 := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(ms(p50), "p50-ms")
	b.ReportMetric(ms(all[len(all)/2]), "with-words-ms")
	b.ReportMetric(ms(fresh[len(fresh)/2]), "just-opened-ms")
	b.ReportMetric(ms(git50), "git-ms")
	b.ReportMetric(ms(first), "first-ms")
	b.ReportMetric(float64(p50)/float64(git50), "ours/git")
}

// say adds a turn that edits a file to a conversation. It saves some turns together: each save
// has all turns before it.
func say(b *testing.B, talk *conversation.Conversation, turn int, path string, text []byte) {
	b.Helper()
	content := string(text)
	edit := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{Args: &agentv1.EditArgs{Path: path, StreamContent: &content}}}}}}
	said, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("question ", turn), MessageId: fmt.Sprint("m", turn)}, edit)
	if err == nil {
		err = talk.AppendTurn(b.Context(), said)
	}
	if err == nil && turn%100 == 0 {
		_, err = talk.Save(b.Context(), nil)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// gitStream writes commits with git fast-import.
type gitStream struct {
	b   *testing.B
	in  io.WriteCloser
	cmd *exec.Cmd
}

func newGitStream(b *testing.B, git, repo string) *gitStream {
	b.Helper()
	if out, err := exec.Command(git, "init", "-q", repo).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(git, "-C", repo, "fast-import", "--quiet")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	return &gitStream{b, in, cmd}
}

func (s *gitStream) commit(at int, path string, text []byte) {
	s.b.Helper()
	message := fmt.Sprintf("turn %d", at)
	_, err := fmt.Fprintf(s.in, "commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata %d\n%s\nM 100644 inline %s\ndata %d\n%s\n",
		1_700_000_000+at, len(message), message, path, len(text), text)
	if err != nil {
		s.b.Fatal(err)
	}
}

func (s *gitStream) close() {
	s.b.Helper()
	if err := s.in.Close(); err != nil {
		s.b.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.b.Fatal(err)
	}
}
