package workspace

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// hidden makes a tree whose index takes some files for what they are not, with the
// stamps that they have: a change that left no trace.
func hidden(t *testing.T, store *mapStore, files int) (root string, index *Index) {
	t.Helper()
	root = t.TempDir()
	names := make([]string, files)
	for i := range names {
		names[i] = fmt.Sprintf("d%d/f%d", i%3, i)
		write(t, root, map[string]string{names[i]: fmt.Sprintf("was %04d", i)})
	}
	letTick()
	index = mustScan(t, store, root, nil, nil).Index
	lies := map[string]Written{}
	for i, name := range names {
		write(t, root, map[string]string{name: fmt.Sprintf("now %04d", i)})
		d, err := openRoot(filepath.Join(root, filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		st, err := d.lstat(filepath.Base(name))
		d.close()
		if err != nil {
			t.Fatal(err)
		}
		lies[name] = Written{ID: blob.Sum(fmt.Appendf(nil, "was %04d", i)), Size: st.size, Inode: st.ino, Mtime: st.mtime}
	}
	letTick()
	return root, mustScan(t, store, root, index, &Options{Written: lies}).Index
}

// A full scan finds what no stamp shows.
func TestFullScan(t *testing.T) {
	store := newStore()
	root, index := hidden(t, store, 30)
	letTick()
	if res := mustScan(t, store, root, index, nil); res.Stats.Read != 0 || len(res.Changed) > 0 {
		t.Fatalf("the changes are not hidden: read %d, changed %v", res.Stats.Read, changeList(res.Changed))
	}
	res := mustScan(t, store, root, index, &Options{Full: true})
	if res.Stats.Read != 30 || len(res.Changed) != 30 {
		t.Errorf("a full scan read %d and found %d changes, want 30", res.Stats.Read, len(res.Changed))
	}
	puts := store.puts
	next := mustScan(t, store, root, res.Index, &Options{Full: true})
	if next.Stats.Read != 30 || store.puts != puts || len(next.Changed) > 0 {
		t.Errorf("a second one: read %d, stored %d, changed %v", next.Stats.Read, store.puts-puts, changeList(next.Changed))
	}
}

func TestRereadNamedFiles(t *testing.T) {
	store := newStore()
	root, index := hidden(t, store, 9)
	res := mustScanPaths(t, store, root, index, []string{"d0"}, &Options{Reread: map[string]bool{"d0/f3": true, "d1/f1": true}})
	wantList(t, "changed", changeList(res.Changed), "modify d0/f3")
}

// Shares that follow each other reach every file once in a round.
func TestSharesReachAll(t *testing.T) {
	needsTrust(t)
	store := newStore()
	root, index := hidden(t, store, 60)
	var read int64
	at := uint32(0xf0000000) // the round goes over the end of the ring
	for range 16 {
		res := mustScan(t, store, root, index, &Options{Share: Share{at, at + 1<<28}})
		read += res.Stats.Read
		index, at = res.Index, at+1<<28
	}
	if read != 60 {
		t.Errorf("a round read %d files, want 60", read)
	}
	res := mustScan(t, store, root, index, &Options{Share: Share{5, 5}})
	if res.Stats.Read != 60 || len(res.Changed) > 0 {
		t.Errorf("the whole ring: read %d, changed %v", res.Stats.Read, changeList(res.Changed))
	}
	if res.Stats.Size != 480 {
		t.Errorf("the files have %d bytes, want 480", res.Stats.Size)
	}
	for _, name := range []string{"a", "b"} {
		if !(Share{7, 7}).has(fileStat{}, name) || (Share{}).has(fileStat{}, name) {
			t.Errorf("%s without an inode", name)
		}
	}
}
