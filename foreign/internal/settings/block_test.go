package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/settings"
)

func block(program string) *foreign.Block {
	return &foreign.Block{Table: "servers.stet", Lines: []string{"command = \"" + program + "\"", "args = [\"mcp\"]"}}
}

// What the agent adds to its settings while the table is there stays; what it adds to the
// table goes with it.
func TestBlockAmongOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	step := func(do func(foreign.Change) (settings.Result, error), b *foreign.Block) {
		t.Helper()
		if _, err := do(foreign.Change{Path: path, Block: b}); err != nil {
			t.Fatal(err)
		}
	}
	write("model = \"m\"\n")
	step(settings.Apply, block("/old/stet"))
	if text := read(); !strings.Contains(text, "\n[servers.stet]\ncommand = \"/old/stet\"\nargs = [\"mcp\"]\n") {
		t.Errorf("got %s", text)
	}
	write(read() + "\n[servers.stet.tools.undo]\napproval = \"always\"\n\n[state]\na = 1\n")
	step(settings.Apply, block("/new/stet"))
	if text := read(); strings.Contains(text, "/old/") || strings.Count(text, "/new/") != 1 || !strings.Contains(text, "[servers.stet.tools.undo]") {
		t.Errorf("got %s", text)
	}
	step(settings.Revert, block("/newer/stet"))
	if text := read(); text != "model = \"m\"\n\n[state]\na = 1\n" {
		t.Errorf("got %q", text)
	}
}

func TestBlockRefused(t *testing.T) {
	for _, src := range []string{"[", "a = ", "servers = 1\n", "servers = {other = {command = \"x\"}}\n"} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := settings.Apply(foreign.Change{Path: path, Block: block("/bin/stet")}); !errors.Is(err, foreign.ErrSettings) {
			t.Errorf("%q gives %q, %v", src, r.After, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != src {
			t.Errorf("%q is %q, %v", src, data, err)
		}
	}
}
