package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// module makes a module of files.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.test/m\n\ngo 1.24\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestErrorsOfOneSystem(t *testing.T) {
	testenv.OnlyFull(t) // as make cross, which it is for
	t.Setenv("GOFLAGS", "-mod=mod")
	for name, c := range map[string]struct {
		files map[string]string
		want  string // in the error for Windows; nothing for macOS
	}{
		"none": {map[string]string{"a.go": "package m\n\nimport \"os\"\n\nvar A = os.Args\n", "a_test.go": "package m_test\n\nimport \"example.test/m\"\n\nvar _ = m.A\n"}, ""},
		"a call that Windows has not": {
			map[string]string{"a.go": "package m\n", "a_test.go": "package m\n\nimport \"syscall\"\n\nfunc f() error { return syscall.Mkfifo(\"x\", 0o600) }\n"},
			"undefined: syscall.Mkfifo",
		},
		"a file for other systems only": {
			map[string]string{"a.go": "package m\n\nfunc A() { b() }\n", "b_darwin.go": "package m\n\nfunc b() {}\n"}, "undefined: b",
		},
		"a test of another package": {
			map[string]string{"a/a.go": "package a\n", "a/a_darwin.go": "package a\n\nconst A = 1\n", "b/b_test.go": "package b\n\nimport \"example.test/m/a\"\n\nvar _ = a.A\n"},
			"undefined: a.A",
		},
	} {
		dir := module(t, c.files)
		if n, err := check(dir, "darwin", "arm64", true, []string{"./..."}); err != nil || n == 0 {
			t.Errorf("%s: %d packages for macOS: %v", name, n, err)
		}
		_, err := check(dir, "windows", "amd64", true, []string{"./..."})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v for Windows, want %q", name, err, c.want)
		}
	}
	if _, err := check(t.TempDir(), "windows", "amd64", false, []string{"./..."}); err == nil {
		t.Error("a directory without a module passed")
	}
}
