package npm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/foreign/internal/npm"
	"github.com/stet-dev/stet/internal/testenv"
)

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "node_modules", "thing", "dist", "cli.js")
	if err := os.MkdirAll(filepath.Dir(program), 0o700); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "node_modules", "thing", "package.json")
	for path, content := range map[string]string{program: "", manifest: `{"name":"thing","version":"1.2.3"}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "bin")
	testenv.SkipWithout(t, "a file system with links", os.Symlink(program, link))
	if got := npm.Version(link, "other", "thing"); got != "1.2.3" {
		t.Errorf("got %q", got)
	}
	if got := npm.Version(link, "other"); got != "" {
		t.Errorf("got the version %q of another package", got)
	}
	if got := npm.Version(filepath.Join(dir, "missing"), "thing"); got != "" {
		t.Errorf("got %q for a missing program", got)
	}
}
