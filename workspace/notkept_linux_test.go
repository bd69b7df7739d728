//go:build !portable

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What no tree holds of a file is counted, and the first few files are named.
func TestWhatTreesDoNotHold(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"plain", "dir/one", "noted", "given"} {
		write(t, root, map[string]string{name: name})
	}
	if err := os.Link(filepath.Join(root, "dir/one"), filepath.Join(root, "two")); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	want := NotKept{Links: 2, Examples: []NotKeptFile{{"dir/one", LackLinks}, {"two", LackLinks}}}
	if err := unix.Setxattr(filepath.Join(root, "noted"), "user.note", []byte("x"), 0); err == nil {
		want.Attributes = 1
		want.Examples = append(want.Examples, NotKeptFile{"noted", LackAttributes})
	} else if !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(root, "given"), 1, -1); err != nil {
			t.Fatal(err)
		}
		want.Owners = 1
		want.Examples = append(want.Examples, NotKeptFile{"given", LackOwner})
	}
	slices.SortFunc(want.Examples, func(a, b NotKeptFile) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	store := newStore()
	res := mustScan(t, store, root, nil, nil)
	if fmt.Sprint(res.NotKept) != fmt.Sprint(want) {
		t.Errorf("a first scan:\n got %+v\nwant %+v", res.NotKept, want)
	}

	// A scan that need not read the files still knows links and owners.
	if again := mustScan(t, store, root, res.Index, nil).NotKept; again.Links != want.Links || again.Owners != want.Owners {
		t.Errorf("a second scan: %+v, want %+v", again, want)
	}

	for i := range 20 {
		if err := os.Link(filepath.Join(root, "two"), filepath.Join(root, fmt.Sprintf("x%02d", i))); err != nil {
			t.Fatal(err)
		}
	}
	n := mustScan(t, newStore(), root, nil, nil).NotKept
	count, examples := n.Of(LackLinks)
	if first := []string{"dir/one", "two", "x00", "x01", "x02"}; count != 22 || !slices.Equal(examples, first) {
		t.Errorf("of %d hard links %q are named, want 22 and %q", count, examples, first)
	}
}
