package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Need skips a test that uses parts which setup could not install on this machine. It
// never skips with CI=true or if setup did not run: the test then fails for the
// missing part.
func Need(tb testing.TB, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if why := LeftOut(part); why != "" {
			tb.Skipf("%s is not installed: %s", part, why)
		}
	}
}

// SkipWithout skips a test that needs something of the machine which is not a part of
// setup, such as a shell, if err says that it is missing. With CI=true the test fails.
func SkipWithout(tb testing.TB, what string, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatalf("%s is missing: %v", what, err)
	default:
		tb.Skipf("%s is missing: %v", what, err)
	}
}

// LeftOut returns why setup could not install a part, or "" if it did.
func LeftOut(part string) string { return leftOut(Root(), part) }

func leftOut(root, part string) string {
	if os.Getenv("CI") == "true" {
		return ""
	}
	why, err := os.ReadFile(filepath.Join(root, ".cache", "left-out", part))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(why))
}

// Browser finds Chromium. Without one the test fails.
func Browser(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	tb.Fatal("there is no Chromium; on Debian the package is called chromium")
	return ""
}

// Root returns the source directory.
func Root() string { return root }

// Tests start in the directory of their package. The names of source files do not say
// where it is in programs that are built with -trimpath.
var root = above()

func above() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}
