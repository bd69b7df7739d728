package agents_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
)

func TestUnknownNames(t *testing.T) {
	for name, want := range map[string]string{
		"claude": `did you mean "claude-code"`, "Claude_Code": `did you mean "claude-code"`, "cluade-code": `did you mean "claude-code"`,
		"qwen-code": `did you mean "qwen"`, "curser": `did you mean "cursor"`, "emacs": "stet supports claude-code, codex, copilot, cursor,", "": "stet supports", "\xff": "stet supports",
	} {
		_, err := agents.FindImportable(name)
		if !errors.Is(err, foreign.ErrUnknownAgent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestNamesThatHaveNoAdapter checks that nobody is told to use a name that is then refused.
func TestNamesThatHaveNoAdapter(t *testing.T) {
	for _, name := range []string{"nobody", "curser"} {
		if _, err := agents.Find(name); !errors.Is(err, foreign.ErrUnknownAgent) || strings.Contains(err.Error(), agents.Cursor) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
