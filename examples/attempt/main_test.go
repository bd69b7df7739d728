package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFailedAttemptIsTakenBack(t *testing.T) {
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ script, said, want string }{
		{"echo two >> a.txt; touch b.txt; exit 3", "failed (exit status 3): 2 files taken back\n", "one\n"},
		{"echo two >> a.txt", "kept: 1 files changed\n", "one\ntwo\n"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), &out, store, dir, []string{"sh", "-c", c.script}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), c.said) {
			t.Errorf("%s: printed %q, want %q", c.script, out.String(), c.said)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != c.want {
			t.Errorf("%s: a.txt is %q, %v; want %q", c.script, got, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err == nil {
		t.Error("b.txt is still there")
	}
}
