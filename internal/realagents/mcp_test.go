package realagents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/internal/realagents"
)

// TestTheAgentUsesTheTools registers 'stet mcp' by 'stet connect --mcp': the agent starts
// it, the model calls a tool and is shown its answer, and disconnect takes it out. Of an
// agent whose model has to search for tools first, only that it has them is seen.
func TestTheAgentUsesTheTools(t *testing.T) {
	each(t, func(t *testing.T, a realagents.Agent) {
		if a.NoServers {
			t.Skipf("%s starts no servers of tools", a.Name)
		}
		b := realagents.NewBox(t, a)
		step(t, a.Name, "MCP", func(t *testing.T) { useTools(t, b.In(t), a) })
	})
}

func useTools(t *testing.T, b *realagents.Box, a realagents.Agent) {
	before := map[string]string{}
	for _, name := range b.Files() {
		before[name] = read(t, b, name)
	}
	b.Stet("connect", a.Name, "--mcp", "-y")
	b.Prompt(nil, one)
	known := len(b.Model.Requests())
	out := b.Prompt(a.Again, "turn two: look back\n::history\n::say seen")
	answered := a.Defers && strings.Contains(out, "mcp__stet__history") // it has started the server
	for _, r := range b.Model.Requests()[known:] {
		answered = answered || strings.Contains(string(r.Body), "Calling session: ") && strings.Contains(string(r.Body), "turn one: make files")
	}
	if !answered {
		last := b.Model.Requests()[len(b.Model.Requests())-1]
		t.Errorf("the model was not shown the answer of the tool; it said %q\n%.2000s\n%.3000s", last.Reply, out, last.Body)
	}
	b.Stet("disconnect", a.Name, "-y")
	for name, text := range before {
		if after := read(t, b, name); after != text && !a.Rewrites {
			t.Errorf("%s (-before +after):\n%s", name, cmp.Diff(text, after))
		}
	}
	err := filepath.WalkDir(b.Home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains("settings.json .claude.json config.toml mcp-config.json opencode.json", d.Name()) {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "--agent="+a.Name) {
			t.Errorf("%s still has the tools:\n%s", path, data)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// read returns a file below the home of a box.
func read(t *testing.T, b *realagents.Box, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.Home, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
