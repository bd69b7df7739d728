package testenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/osfile"
)

// Inode returns the number of the file at a path, of a link itself.
func Inode(tb testing.TB, path string) uint64 {
	tb.Helper()
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		tb.Fatal(err)
	}
	defer root.Close()
	st, err := osfile.StatAt(root, filepath.Base(path))
	if err != nil {
		tb.Fatal(err)
	}
	return st.Index
}
