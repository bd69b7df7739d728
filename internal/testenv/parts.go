package testenv

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Need skips a test that uses parts which setup could not bring to this machine.
// With CI=true it never skips, and neither where setup did not run: a test then
// fails for what it does not find.
func Need(tb testing.TB, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if why := LeftOut(part); why != "" {
			tb.Skipf("%s is left out: %s", part, why)
		}
	}
}

// LeftOut returns why setup could not bring a part, or nothing if it did.
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

// Root returns the directory of the sources.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
