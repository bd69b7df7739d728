package realagents_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/realagents"
)

// TestCodexHooksAreApproved: Codex skips hooks until its user approved them. stet says so
// until then, and agrees with Codex about what was approved.
func TestCodexHooksAreApproved(t *testing.T) {
	each(t, func(t *testing.T, _ realagents.Agent) {
		a := realagents.CodexAsking()
		b := realagents.NewBox(t, a)
		b.Stet("connect", a.Name, "-y")
		step(t, a.Name, "approval", func(t *testing.T) { approval(t, b.In(t)) })
	}, "codex")
}

func approval(t *testing.T, b *realagents.Box) {
	state := func(want string) {
		t.Helper()
		type agent struct{ State, Why string }
		for _, line := range lines[agent](t, b.Stet("connect", "codex", "--list", "--json")) {
			if line.State != want {
				t.Errorf("codex is %q (%s), want %q", line.State, line.Why, want)
			}
		}
	}
	state("blocked")
	b.Prompt(nil, one)
	if _, err := os.Stat(filepath.Join(b.Home, ".local", "share", "stet")); err == nil {
		t.Error("hooks ran that nobody approved")
	}
	state("blocked")
	config := filepath.Join(b.Home, ".codex", "config.toml")
	text := read(t, b, ".codex/config.toml")
	for key, hash := range hashes(t, b) { // as Codex writes them when its user approves
		text += fmt.Sprintf("\n[hooks.state.%q]\ntrusted_hash = %q\n", key, hash)
	}
	b.Write(config, text)
	state("connected")
	b.Prompt(nil, one)
	if log := b.Stet("log"); !strings.Contains(log, "turn one: make files") {
		t.Errorf("approved hooks did not run:\n%s", log)
	}
}

// hashes asks Codex for its hooks.
func hashes(t *testing.T, b *realagents.Box) map[string]string {
	t.Helper()
	cmd := b.Command("codex", "app-server")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close() // it ends with its input
		_ = cmd.Wait()
	}()
	params, _ := json.Marshal(map[string]any{"cwds": []string{b.Workspace}})
	fmt.Fprintf(in, "%s\n%s\n{\"id\":2,\"method\":\"hooks/list\",\"params\":%s}\n",
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"t","version":"1"},"capabilities":{"experimentalApi":true}}}`, `{"method":"initialized"}`, params)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer struct {
			ID     int
			Result struct {
				Data []struct {
					Hooks []struct{ Key, CurrentHash string }
				}
			}
		}
		if json.Unmarshal(lines.Bytes(), &answer) != nil || answer.ID != 2 {
			continue
		}
		found := map[string]string{}
		for _, d := range answer.Result.Data {
			for _, h := range d.Hooks {
				found[h.Key] = h.CurrentHash
			}
		}
		return found
	}
	t.Fatalf("codex lists no hooks: %v", lines.Err())
	return nil
}
