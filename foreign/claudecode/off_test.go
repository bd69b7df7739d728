package claudecode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/claudecode"
)

func TestOff(t *testing.T) {
	const on, off = `{"disableAllHooks": false}`, `{"disableAllHooks": true}`
	for name, c := range map[string]struct{ user, project, local, want string }{
		"nothing":                    {},
		"other settings":             {user: `{"env":{"disableAllHooks": true}}`},
		"the user's":                 {user: "{\n  // for now\n  \"disableAllHooks\": true,\n}\n", want: "home/.claude/settings.json"},
		"not true":                   {user: `{"disableAllHooks": "true"}`},
		"the project's":              {user: on, project: off, want: "project/.claude/settings.json"},
		"the project's switch on":    {user: off, project: on},
		"the project's local":        {project: on, local: off, want: "project/.claude/settings.local.json"},
		"the local switch on":        {user: off, project: off, local: on},
		"a broken file is not read":  {user: off, local: "{", want: "home/.claude/settings.json"},
		"a file without the setting": {user: off, local: "{}", want: "home/.claude/settings.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range map[string]string{"home/.claude/settings.json": c.user, "project/.claude/settings.json": c.project, "project/.claude/settings.local.json": c.local} {
				path = filepath.Join(dir, filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if text == "" {
					continue
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h, project := foreign.Host{Home: filepath.Join(dir, "home")}, filepath.Join(dir, "project")
			for _, in := range []foreign.Connect{{Dir: project}, {Project: project}} {
				got := claudecode.New().Off(h, in)
				if (got == "") != (c.want == "") || !strings.HasSuffix(got, filepath.FromSlash(c.want)) {
					t.Errorf("in %+v: got %q, want %q", in, got, c.want)
				}
			}
		})
	}
}
