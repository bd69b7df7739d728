package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/attempt"
)

// work is a directory that an agent and its user write to.
type work struct {
	t    *testing.T
	dir  string
	conv string
	w    *checkpoint.Workspace
}

func newWork(t *testing.T, db *stet.DB, dir, title string) *work {
	t.Helper()
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := db.Checkpoints().Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	conv := add(t, db, title, 1, func(int) (string, string) { return title, "done" })
	return &work{t: t, dir: dir, conv: conv, w: w}
}

func (w *work) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *work) take(turn uint64, side checkpoint.Side) string {
	w.t.Helper()
	made, err := w.w.Checkpoint(w.t.Context(), checkpoint.Request{Conversation: w.conv, Turn: turn, Side: side})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Record.ID
}

func (w *work) rewind(to string) {
	w.t.Helper()
	p, err := w.w.Plan(w.t.Context(), checkpoint.RewindRequest{To: to})
	if err == nil {
		_, err = w.w.Rewind(w.t.Context(), p.Request(), p.Token)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// numbered is a text of lines, some of them different.
func numbered(n int, other map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		line := other[i]
		if line == "" {
			line = "line " + string(rune('a'+i-1))
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// changedByBoth adds a conversation whose agent changed two places of a file and made
// another, and whose user changed both files since.
func changedByBoth(t *testing.T, db *stet.DB, dir string) {
	t.Helper()
	w := newWork(t, db, dir, "changed by both")
	w.write("a.txt", numbered(24, nil))
	w.take(1, checkpoint.Before)
	w.write("a.txt", numbered(24, map[int]string{2: "agent two", 20: "agent twenty"}))
	w.write("made.txt", "agent\n")
	w.take(1, checkpoint.After)
	w.write("a.txt", numbered(24, map[int]string{2: "agent two", 11: "my eleven", 20: "agent twenty"}))
	w.write("made.txt", "agent\nmine\n")
}

// twoBranches adds a conversation that was rewound twice to the same point.
func twoBranches(t *testing.T, db *stet.DB, dir string) {
	t.Helper()
	w := newWork(t, db, dir, "rewound twice")
	w.write("a.txt", "0\n")
	start := w.take(1, checkpoint.After)
	for _, text := range []string{"first\n", "second\n"} {
		w.write("a.txt", text)
		w.take(2, checkpoint.After)
		w.rewind(start)
	}
}

// emptyRun adds what stet run leaves of a command that changed nothing.
func emptyRun(t *testing.T, db *stet.DB) {
	t.Helper()
	conv, err := db.Conversations().Create(t.Context(), conversation.Info{Title: "/bin/true", Agent: "true"})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := conversation.NewShellTurn(&agentv1.ShellCommand{Command: "/bin/true"}, &agentv1.ShellOutput{})
	if err == nil {
		err = conv.AppendTurn(t.Context(), turn)
	}
	if err == nil {
		_, err = conv.Save(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hundredFiles adds a conversation whose agent changed a hundred files.
func hundredFiles(t *testing.T, db *stet.DB, dir string) {
	t.Helper()
	w := newWork(t, db, dir, "a hundred files")
	text := func(more string) string { return "package files\n\n" + more + strings.Repeat("// the same\n", 50) }
	for _, more := range []string{"", "var changed = true\n\n"} {
		for i := range 100 {
			w.write(fmt.Sprintf("f%03d.go", i), text(more))
		}
		w.take(1, checkpoint.After)
	}
}

// threeAttempts runs a command in three copies of a directory. The first one has the words of
// an agent.
func threeAttempts(t *testing.T, db *stet.DB, bin, store string) {
	t.Helper()
	dir := filepath.Clean(store + "-tried")
	script := filepath.Join(t.TempDir(), "attempts.sh")
	for path, text := range map[string]string{
		filepath.Join(dir, "lib.txt"): "lib\n",
		script: `echo attempt $STET_TRY prints
echo lib of attempt $STET_TRY > lib.txt
if [ $STET_TRY = 2 ]; then echo new > new.txt; fi
if [ $STET_TRY = 3 ]; then exit 3; fi
`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), bin, "--store", store, "-C", dir, "try", "3", "--score", "tr -dc 0-9 < lib.txt", "--", "sh", script)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("try: %v\n%s", err, out)
	}
	all, err := attempt.List(t.Context(), db.Conversations(), dir)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d attempts: %v", len(all), err)
	}
	said := add(t, db, "words of an attempt", 3, func(n int) (string, string) { return fmt.Sprint("asked ", n), "done" })
	if err := db.Conversations().SetLabel(t.Context(), all[0].ID, "try.words", said); err != nil {
		t.Fatal(err)
	}
}
