package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A scan lists the data of git repositories below the root, also where it takes names from
// the index, and captures the files around it.
func TestRepositoriesInAWorkspace(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{
		".git/HEAD": "x", "lib/.git/HEAD": "x", "lib/file": "1", "sub/.git": "gitdir: x", "plain/file": "1",
		".gitignore": "ignored/\n", "ignored/.git/HEAD": "x",
	})
	letTick()
	want := []string{"ignored: ignored", "lib/.git: git repository", "sub/.git: git repository"}
	res := mustScan(t, store, root, nil, nil)
	for range 3 {
		wantList(t, "not captured", skippedList(res.NotCaptured), want...)
		again := mustScan(t, store, root, res.Index, nil)
		if again.Tree != res.Tree {
			t.Fatalf("another tree: %v", changeList(again.Changed))
		}
		res = again
	}
	wantList(t, "tree", listTree(t, store, res.Tree),
		".gitignore file", "lib dir", "lib/file file", "plain dir", "plain/file file", "sub dir")
	write(t, root, map[string]string{"lib/file": "22"})
	part := mustScanPaths(t, store, root, res.Index, []string{"lib/file"}, nil)
	wantList(t, "not captured of one path", skippedList(part.NotCaptured))
	res = mustScan(t, store, root, part.Index, nil)
	wantList(t, "not captured after it", skippedList(res.NotCaptured), want...)

	stamps, err := StampRepositories(root, res.NotCaptured, 100)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(want ...string) {
		t.Helper()
		got, err := ChangedIgnored(root, stamps)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("changed: %v, %v, want %v", got, err, want)
		}
	}
	write(t, root, map[string]string{".git/index": "x", "lib/.git/index": "x", "sub/.git": "gitdir: y", "ignored/.git/index": "x"})
	changed()
	for _, path := range []string{"lib", "sub/.git", "ignored/.git"} {
		if err := os.RemoveAll(filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
	}
	changed("ignored/.git", "lib/.git", "sub/.git")
	wantList(t, "not captured at the end", skippedList(mustScan(t, store, root, res.Index, nil).NotCaptured), "ignored: ignored")
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	changed(".git", "ignored/.git", "lib/.git", "sub/.git")
}
