package workspace

import (
	"os"
	"runtime"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// What is known about a file system is what it does, and trying it out leaves nothing
// behind.
func TestTraits(t *testing.T) {
	dir := t.TempDir()
	got, err := Probe(dir)
	if err != nil {
		t.Fatal(err)
	}
	if known, ok := knownTraits(dir); ok && runtime.GOOS == "linux" {
		known.Swaps = got.Swaps // depends on the back end and the kernel
		if got != known {
			t.Errorf("tried out: %+v, known: %+v", got, known)
		}
	}
	if modes, ok := knownModes(dir); ok && modes != got.Modes {
		t.Errorf("stores modes: tried out %v, known %v", got.Modes, modes)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, err := Probe(dir + "/missing"); err == nil {
		t.Error("a missing directory has traits")
	}
}

func TestTraitsOfAFoldingFileSystem(t *testing.T) {
	dir := testenv.FoldingDir(t)
	if got := TraitsOf(dir); !got.FoldsCase || !mayFold(dir) {
		t.Errorf("%+v, may fold: %v", got, mayFold(dir))
	}
}
