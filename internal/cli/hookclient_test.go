package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHooksNameTheSmallProgram(t *testing.T) {
	dir := t.TempDir()
	stet := filepath.Join(dir, "stet")
	if got := hookClient(stet); got != stet {
		t.Errorf("without stet-hook agents run %s", got)
	}
	small := filepath.Join(dir, "stet-hook")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := hookClient(stet); got != stet {
		t.Errorf("agents run a directory: %s", got)
	}
	if err := os.Remove(small); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(small, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := hookClient(stet); got != small {
		t.Errorf("agents run %s, want %s", got, small)
	}
}
