package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/cli"
	"github.com/stet-dev/stet/internal/testenv"
)

// desk is a user with a workspace whose store is on a server.
type desk struct {
	t         *testing.T
	store     string
	workspace string
}

// stet runs a command and returns what it prints.
func (d *desk) stet(code int, args ...string) string {
	d.t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"--store", d.store, "-C", d.workspace}, args...)
	if got := cli.Main(args, strings.NewReader(""), &out, &errs); got != code {
		d.t.Errorf("stet %q: exit %d, want %d\n%s%s", args, got, code, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String())
}

func (d *desk) write(name, content string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.workspace, name), []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) holds(name, want string) {
	d.t.Helper()
	if got, err := os.ReadFile(filepath.Join(d.workspace, name)); err != nil || string(got) != want {
		d.t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
	}
}

// doctor is the command that examines a store, with the suites in full runs only.
func doctor() []string {
	if testenv.Full() {
		return []string{"doctor"}
	}
	return []string{"doctor", "--quick"}
}

// Verbs work with a server's store as they do with one on this machine.
func TestVerbsAgainstAServer(t *testing.T) {
	db, address := start(t)
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "STET_TOKEN": token, "STET_STORE": ""} {
		t.Setenv(name, value)
	}
	d := &desk{t: t, store: address, workspace: filepath.Join(t.TempDir(), "work")}
	if err := os.Mkdir(d.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	withCurl(t, address, mkdir(t)) // leaves the conversation "talk" and the agent "worker"

	d.write("a.txt", "one\n")
	first := d.stet(0, "checkpoint", "-m", "first")
	d.write("a.txt", "two\n")
	if out := d.stet(0, "diff", first); !strings.Contains(out, "+two") {
		t.Errorf("diff: %s", out)
	}
	d.stet(0, "rewind", first, "--dry-run")
	d.stet(0, "rewind", first, "--files", "--exact", "-y")
	d.holds("a.txt", "one\n")
	d.stet(0, "undo")
	d.holds("a.txt", "two\n")
	d.stet(0, "redo")
	d.holds("a.txt", "one\n")
	d.stet(0, "pin", "good", first)
	d.stet(0, "unpin", "good")
	for _, verb := range []string{
		"status", "ls", "log", "op log", "show talk", "export talk --format md", "search again", "state show talk", "state dag talk",
		"blob ls", "tail worker --json", "tail talk --once", "fsck",
	} {
		if out := d.stet(0, strings.Fields(verb)...); out == "" {
			t.Errorf("stet %s prints nothing", verb)
		}
	}
	file := filepath.Join(d.workspace, "a.txt")
	if id := d.stet(0, "blob", "put", file); d.stet(0, "blob", "get", id) != "one" {
		t.Errorf("blob %s is another", id)
	}

	// What the server alone can do, it is asked to do.
	garbage := d.stet(0, "blob", "put", filepath.Join(d.workspace, "a.txt"))
	if out := d.stet(0, "gc", "--dry-run", "--grace", "0s"); !strings.Contains(out, "would") {
		t.Errorf("gc --dry-run: %s", out)
	}
	d.stet(0, "gc", "--grace", "0s")
	d.stet(0, "fsck", "--read-data")
	if out := d.stet(0, "du"); !strings.Contains(out, "all") {
		t.Errorf("du after a collection that left %s: %s", garbage, out)
	}
	d.stet(0, doctor()...)
	d.stet(0, "fork", "talk")
	d.stet(0, "run", "--", "sh", "-c", "echo run > run.txt")
	d.holds("run.txt", "run\n")

	if out := d.stet(0, "import", filepath.Join("..", "..", "foreign", "cursor", "testdata", "state.vscdb")); !strings.Contains(out, "imported 2 conversations") {
		t.Errorf("import: %s", out)
	}
	// Keys, tokens and the log of who used them are the server's own, on its machine.
	for _, verb := range []string{"keys init", "keys list", "keys rotate", "tokens list", "audit"} {
		d.stet(2, strings.Fields(verb)...)
	}

	// Down to a directory, on with it there, and up again.
	local := &desk{t: t, store: filepath.Join(t.TempDir(), "store"), workspace: d.workspace}
	if out := local.stet(0, "pull", address); !strings.Contains(out, "created   talk") {
		t.Errorf("pull: %s", out)
	}
	if out := local.stet(0, "push", address, "talk"); !strings.Contains(out, "current   talk") {
		t.Errorf("push: %s", out)
	}
	if got, err := db.Conversations().Get(t.Context(), "talk"); err != nil || !strings.Contains(local.stet(0, "ls", "--json"), `"talk"`) || got.Turns != 2 {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
	t.Setenv("STET_TOKEN", "wrong")
	local.stet(1, "push", address)
}

func mkdir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
