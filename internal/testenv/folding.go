package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// FoldingDir returns a new directory of a file system that takes Readme and README for one
// name, or skips the test. STET_FOLDING names a directory of such a file system; without it
// the directory for temporary files is used where that folds names.
func FoldingDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(os.Getenv("STET_FOLDING"), "stet-folding-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Aa"), nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	_, err = os.Lstat(filepath.Join(dir, "aA"))
	if removeErr := os.Remove(filepath.Join(dir, "Aa")); removeErr != nil {
		tb.Fatal(removeErr)
	}
	if err != nil {
		if os.Getenv("STET_FOLDING") != "" {
			tb.Fatal("STET_FOLDING is on a file system that does not fold names")
		}
		tb.Skip("names do not fold here; make test-folding makes a file system on which they do")
	}
	return dir
}
