package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign/agents"
)

// Every agent that can be connected has a guide of one screen, whose commands exist.
func TestEveryAgentHasAGuide(t *testing.T) {
	block, inline := regexp.MustCompile(`^(?:\$ )?stet ([a-z]+)`), regexp.MustCompile("`stet ([a-z]+)")
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	a := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	root := a.root()
	for _, name := range agents.Names() {
		data, err := os.ReadFile(filepath.Join("..", "..", "docs", "agents", name+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		text := string(data)
		if n := strings.Count(text, "\n"); n > 60 {
			t.Errorf("%s: %d lines are more than a screen", name, n)
		}
		for _, part := range []string{"| what you have today | with stet |", "stet connect " + name, "stet log", "stet rewind", "stet resume", "stet undo", "stet disconnect " + name, "ot captured"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the guide has no %q", name, part)
			}
		}
		verb := inline
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "```") {
				verb = map[bool]*regexp.Regexp{true: block, false: inline}[verb == inline]
			}
			found := verb.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			cmd, _, err := root.Find([]string{found[1]})
			if err != nil || cmd == root {
				t.Errorf("%s: there is no command %q", name, found[1])
				continue
			}
			_, command, _ := strings.Cut(line, "stet "+found[1])
			command, _, _ = strings.Cut(command, "`")
			command, _, _ = strings.Cut(command, "#")
			for _, f := range flag.FindAllString(command, -1) {
				if cmd.Flags().Lookup(f[2:]) == nil && cmd.InheritedFlags().Lookup(f[2:]) == nil {
					t.Errorf("%s: stet %s has no flag %s", name, found[1], f)
				}
			}
		}
	}
}
