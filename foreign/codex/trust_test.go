package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/codex"
)

// Hooks and what Codex 0.166.0 itself wrote when they were approved with "Trust all and
// continue".
const (
	twoHooks = `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/bin/stet hook codex PreToolUse","timeout":10}]}],"Stop":[{"hooks":[{"type":"command","command":"/bin/stet hook codex Stop","timeout":10}]}]}}`
	approved = `model = "m"
[hooks.state]

[hooks.state."HOME/.codex/hooks.json:pre_tool_use:0:0"]
trusted_hash = "sha256:0f0179f792593dd9d484a06436c6b8f5e3052497193a732467872503e83e6259"

[hooks.state."HOME/.codex/hooks.json:stop:0:0"]
trusted_hash = "sha256:f07d1d0d0427faba3eb7e0028bff48062499968a2dff8ce5fe9e88c6d37fb546"
`
)

func TestSkips(t *testing.T) {
	change := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, c := range map[string]struct{ hooks, config, want string }{
		"approved":         {twoHooks, approved, ""},
		"no settings":      {twoHooks, "-", "skips 2 of 2 hooks until you approve them"},
		"not approved":     {twoHooks, `model = "m"`, "skips 2 of 2 hooks until you approve them"},
		"one approved":     {twoHooks, strings.Split(approved, "[hooks.state.\"HOME/.codex/hooks.json:stop")[0], "skips 1 of 2 hooks"},
		"command changed":  {change(twoHooks, "/bin/stet hook codex Stop", "/opt/stet hook codex Stop"), approved, "skips 1 of 2 hooks"},
		"timeout changed":  {change(twoHooks, `Stop","timeout":10`, `Stop","timeout":11`), approved, "skips 1 of 2 hooks"},
		"matcher changed":  {change(twoHooks, `"*"`, `"Bash"`), approved, "skips 1 of 2 hooks"},
		"moved by others":  {change(twoHooks, `"Stop":[`, `"Stop":[{"hooks":[{"type":"command","command":"mine"}]},`), approved, "skips 1 of 2 hooks"},
		"only others'":     {`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]}}`, "", ""},
		"switched off":     {twoHooks, approved + "enabled = false\n", "1 of 2 hooks are switched off"},
		"switched on":      {twoHooks, approved + "enabled = true\n", ""},
		"no hooks at all":  {"-", approved, ""},
		"broken hooks":     {"{", approved, "error"},
		"broken approvals": {twoHooks, "[", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for file, text := range map[string]string{"hooks.json": c.hooks, "config.toml": c.config} {
				path := filepath.Join(home, ".codex", file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if text == "-" {
					continue
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOME", home)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := codex.New().Skips(foreign.Host{Home: home}, foreign.Connect{Command: []string{"/bin/stet", "hook", "codex"}})
			if (err != nil) != (c.want == "error") {
				t.Fatal(err)
			}
			if c.want != "error" && (c.want == "" && got != "" || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
