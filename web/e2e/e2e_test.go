// Package e2e tests the page as people use it: the committed build against its
// sources, the logic of its views, and every view in a real browser on a real
// server. It needs node, npm and Chromium (Debian: nodejs, npm, chromium).
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

const app = "../app"

// run runs a command in the directory of the page's sources.
func run(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = app
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// install brings the packages that the lock file names.
func install(t *testing.T) {
	t.Helper()
	testenv.Need(t, "node", "page")
	run(t, nil, "../../internal/tools/npm.sh", ".")
}

// leaveToCheck skips what make test leaves to make check, as it does with generated
// files and lint.
func leaveToCheck(t *testing.T) {
	t.Helper()
	if !testenv.Full() {
		t.Skip("left to make check")
	}
}

func TestBuiltFilesAreThoseOfTheSources(t *testing.T) {
	leaveToCheck(t)
	install(t)
	out := t.TempDir()
	run(t, nil, "node", "node_modules/vite/bin/vite.js", "build", "--logLevel", "error", "--outDir", out)
	built, committed := tree(t, out), tree(t, "../dist")
	for name, data := range built {
		if !bytes.Equal(data, committed[name]) {
			t.Errorf("dist/%s is not what the sources give: run go generate ./web and commit the result", name)
		}
	}
	for name := range committed {
		if _, ok := built[name]; !ok {
			t.Errorf("dist/%s comes from nowhere", name)
		}
	}
}

// tree reads the files below a directory.
func tree(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSourcesHaveTheirTypes(t *testing.T) {
	leaveToCheck(t)
	install(t)
	run(t, nil, "node", "node_modules/typescript/bin/tsc", "--noEmit")
}

func TestLogicOfTheViews(t *testing.T) {
	install(t)
	run(t, nil, "node", "test/run.mjs", t.TempDir())
}

func TestLockFileNamesNoHost(t *testing.T) {
	lock, err := os.ReadFile(filepath.Join(app, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(lock, []byte("\"resolved\"")) {
		t.Error("package-lock.json names a registry")
	}
}

func TestPagesInABrowser(t *testing.T) {
	t.Setenv("STET_COMPACT_BACKGROUND", "false") // nothing runs when the directory goes
	testenv.Need(t, "browser")
	install(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "stet")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", bin, "../../cmd/stet")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, name := range []string{"pages", "axe"} {
		t.Run(name, func(t *testing.T) {
			if name == "axe" {
				leaveToCheck(t)
			}
			t.Parallel()
			store := filepath.Join(dir, name)
			fill(t, bin, store)
			run(t, []string{"STET_BIN=" + bin, "STET_STORE=" + store, "STET_CHROMIUM=" + testenv.Browser(t)}, "node", "--test", "e2e/"+name+".test.mjs")
		})
	}
}

// fill lets a server make its demonstration, then adds what is hard to show.
func fill(t *testing.T, bin, store string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	serve := exec.CommandContext(ctx, bin, "--store", store, "serve", "--demo", "--json", "--listen", "127.0.0.1:0")
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	serve.WaitDelay = time.Minute
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 4096)
	if _, err := out.Read(first); err != nil { // it speaks when everything is there
		t.Fatal(err)
	}
	db, err := stet.Open(ctx, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	threeAttempts(t, db, bin, store)
	add(t, db, "ten thousand turns", 10_000, func(n int) (string, string) {
		return fmt.Sprintf("question number %d", n), fmt.Sprintf("answer number %d", n)
	})
	add(t, db, "<script>hacked=1</script> and others", 1, func(int) (string, string) { return hostile, hostile })
	forget(t, db)
	importTwo(t, db, store+"-imported", "from the editor", time.Hour)
	changedByBoth(t, db, store+"-both")
	twoBranches(t, db, store+"-branches")
	hundredFiles(t, db, store+"-hundred")
	emptyRun(t, db)
	importTwo(t, db, store+"-old", "long ago", 2*365*24*time.Hour)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = serve.Wait() // ended by us
}

// forget adds a conversation of five checkpoints, of which three are gone. Retention
// would let them grow old first.
func forget(t *testing.T, db *stet.DB) {
	t.Helper()
	ctx := t.Context()
	conv := add(t, db, "mostly forgotten", 1, func(int) (string, string) { return "five times", "done" })
	dir := t.TempDir()
	w, err := db.Checkpoints().Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b := &kv.Batch{}
	for n := range 5 {
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), fmt.Appendln(nil, "version", n), 0o644); err != nil {
			t.Fatal(err)
		}
		made, err := w.Checkpoint(ctx, checkpoint.Request{Conversation: conv, Turn: uint64(n + 1), Side: checkpoint.After})
		if err != nil {
			t.Fatal(err)
		}
		if id := made.Record.ID; n > 0 && n < 4 {
			b.Delete = append(b.Delete, keyspace.Checkpoint(id), keyspace.WorkspaceCheckpoint(w.ID(), id), keyspace.ConversationCheckpoint(conv, id))
		}
	}
	if err := db.Rows().Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
}

// importTwo adds a conversation with two checkpoints of another program, which know one
// file of their directory.
func importTwo(t *testing.T, db *stet.DB, dir, title string, age time.Duration) {
	t.Helper()
	ctx := t.Context()
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", "mine.txt": "mine\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	conv, err := db.Conversations().Create(ctx, conversation.Info{Title: title, Agent: "cursor", Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	var list []checkpoint.Imported
	for i, text := range []string{"one\n", "one\ntwo\n"} {
		e, err := workspace.PutFile(ctx, db.Blobs(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		e.Mode = 0o644
		tree, err := workspace.Edit(ctx, db.Blobs(), blob.ID{}, map[string]*workspace.Entry{"a.txt": &e})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, checkpoint.Imported{Source: fmt.Sprintf("cp-%d", i), Tree: tree, Time: time.Now().Add(-age)})
	}
	if _, err := db.Checkpoints().AddImported(ctx, conv.ID(), dir, "cursor", list); err != nil {
		t.Fatal(err)
	}
}

const hostile = "<img src=x onerror=hacked=1> <script>hacked=1</script> [x](javascript:hacked=1) ![x](http://192.0.2.1/pixel.png)\n\n" +
	"<iframe src=\"http://192.0.2.1/\"></iframe> <style>*{display:none}</style> <form action=\"http://192.0.2.1/\"><button>x</button></form>\n\n" +
	"```html\n<script>hacked=1</script>\n```\n\n\x1b[31mred \u202eright to left"

func add(t *testing.T, db *stet.DB, title string, turns int, say func(n int) (ask, answer string)) string {
	t.Helper()
	conv, err := db.Conversations().Create(t.Context(), conversation.Info{Title: title, Agent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= turns; n++ {
		ask, answer := say(n)
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: ask, MessageId: fmt.Sprintf("m%d", n)},
			&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: answer}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := conv.AppendTurn(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conv.Save(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return conv.ID()
}
