package swapdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// Where a file system cannot rename without replacing, a file has both names for a
// moment. A crash in it leaves nothing of the rewind behind, and nobody is blamed.
func TestKilledBetweenTwoNames(t *testing.T) {
	dir := testenv.TempDir(t)
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	write := func(path, text string) { must(t, os.WriteFile(path, []byte(text), 0o644)) }
	write(in("old"), "old\n")
	write(in("back"), "back\n")
	want := testenv.Snapshot(t, dir)
	root, err := Open(dir, nil)
	must(t, err)
	defer root.Close()
	must(t, os.Mkdir(in(stageName), 0o700))
	steps := []Step{{Kind: Install, Path: "new", Slot: 0}, {Kind: Exchange, Path: "old", Slot: 1}, {Kind: Remove, Path: "back", Slot: 2}}
	for i, slot := range []string{"n0", "n1"} {
		write(in(stageName, slot), "new\n")
		st, err := root.d.lstat(stageName + "/" + slot)
		must(t, err)
		steps[i].Staged = st.staged()
	}
	must(t, os.Link(in(stageName, "n0"), in("new")))
	must(t, os.Rename(in("old"), in(stageName, "o1")))
	must(t, os.Link(in(stageName, "n1"), in("old")))
	must(t, os.Link(in("back"), in(stageName, "o2"))) // as taking back began
	swap, err := root.Resume(stageName, steps)
	must(t, err)
	for range 2 {
		left, err := swap.RollBack()
		must(t, err)
		if len(left) > 0 {
			t.Errorf("left %q", left)
		}
	}
	must(t, swap.Remove())
	if d := testenv.Differ(testenv.Snapshot(t, dir), want); len(d) > 0 {
		t.Fatalf("tree differs:\n%s", strings.Join(d, "\n"))
	}
}
