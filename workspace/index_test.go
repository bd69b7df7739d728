package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

func indexedTree(t testing.TB) (root string, store *mapStore, res *Result) {
	t.Helper()
	root, store = t.TempDir(), newStore()
	files := map[string]string{".gitignore": "*.o\n", "link": "-> d1"}
	for i := range 60 {
		files[fmt.Sprintf("d%d/s%d/f%d", i%5, i%3, i)] = fmt.Sprint(i)
		files[fmt.Sprintf("d%d/f%d.o", i%5, i)] = "ignored"
	}
	write(t, root, files)
	letTick()
	return root, store, mustScan(t, store, root, nil, &Options{Touched: []string{"d1/f1.o"}})
}

func TestIndexRoundTrip(t *testing.T) {
	needsTrust(t)
	root, store, res := indexedTree(t)
	data, err := res.Index.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseIndex(data)
	if err != nil {
		t.Fatal(err)
	}
	if back.Tree() != res.Tree {
		t.Errorf("tree = %s, want %s", back.Tree(), res.Tree)
	}
	next := mustScan(t, store, root, back, nil)
	if next.Stats.Read != 0 || next.Tree != res.Tree || len(next.Changed) > 0 {
		t.Errorf("read %d files, changed %v", next.Stats.Read, changeList(next.Changed))
	}
	again, err := next.Index.MarshalBinary()
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("an unchanged index has other bytes (%v)", err)
	}
}

func TestIndexSaveAppendsAndCompacts(t *testing.T) {
	needsTrust(t)
	t.Run("plain", func(t *testing.T) { indexSaveAppendsAndCompacts(t, nil) })
	t.Run("sealed", func(t *testing.T) { indexSaveAppendsAndCompacts(t, newTestKeys()) })
}

func indexSaveAppendsAndCompacts(t *testing.T, seal Sealer) {
	root, store, res := indexedTree(t)
	path := filepath.Join(t.TempDir(), "index")
	if err := res.Index.SaveSealed(path, seal); err != nil {
		t.Fatal(err)
	}
	first := size(t, path)
	grew, shrank := false, false
	for i := range 120 {
		prev, err := OpenSealedIndex(path, seal)
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		before := size(t, path)
		write(t, root, map[string]string{"d1/s1/f1": fmt.Sprint("round ", i)})
		next := mustScanPaths(t, store, root, prev, []string{"d1/s1/f1"}, nil)
		if len(next.Changed) != 1 {
			t.Fatalf("round %d: changed %v", i, changeList(next.Changed))
		}
		if err := next.Index.SaveSealed(path, seal); err != nil {
			t.Fatal(err)
		}
		if err := prev.Close(); err != nil {
			t.Fatal(err)
		}
		after := size(t, path)
		grew, shrank = grew || after > before, shrank || after < before
		if after > 2*first+(1<<17) {
			t.Fatalf("round %d: index of %d bytes, at first %d", i, after, first)
		}
	}
	if !grew || !shrank {
		t.Errorf("appended: %v, compacted: %v; want both", grew, shrank)
	}
	last, err := OpenSealedIndex(path, seal)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if full := mustScan(t, store, root, last, nil); full.Stats.Read != 0 || len(full.Changed) > 0 {
		t.Errorf("after all rounds: read %d, changed %v", full.Stats.Read, changeList(full.Changed))
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Two processes that save over each other lose time at most.
func TestIndexSaveByTwo(t *testing.T) {
	t.Run("plain", func(t *testing.T) { indexSaveByTwo(t, nil) })
	t.Run("sealed", func(t *testing.T) { indexSaveByTwo(t, newTestKeys()) })
}

func indexSaveByTwo(t *testing.T, seal Sealer) {
	root, store, res := indexedTree(t)
	path := filepath.Join(t.TempDir(), "index")
	if err := res.Index.SaveSealed(path, seal); err != nil {
		t.Fatal(err)
	}
	one, err := OpenSealedIndex(path, seal)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := OpenSealedIndex(path, seal)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	saves := 10
	if testenv.SlowFiles() {
		saves = 2
	}
	for i := range saves {
		write(t, root, map[string]string{"d1/s1/f1": fmt.Sprint("one ", i), "d2/s1/f7": fmt.Sprint("two ", i)})
		a := mustScanPaths(t, store, root, one, []string{"d1/s1/f1"}, nil)
		b := mustScanPaths(t, store, root, two, []string{"d2/s1/f7"}, nil)
		for _, x := range []*Index{a.Index, b.Index} {
			if err := x.SaveSealed(path, seal); err != nil {
				t.Fatal(err)
			}
		}
		one, two = a.Index, b.Index
		last, err := OpenSealedIndex(path, seal)
		if err != nil {
			t.Fatal(err)
		}
		if last.Tree() != b.Tree {
			t.Errorf("round %d: the file does not hold the index saved last", i)
		}
		full := mustScan(t, store, root, last, nil)
		if fresh := mustScan(t, newStore(), root, nil, &Options{Touched: []string{"d1/f1.o"}}); full.Tree != fresh.Tree {
			t.Errorf("round %d: wrong tree by the saved index", i)
		}
		last.Close()
	}
}

// Whatever happens to the bytes of an index, scans give the right tree.
func TestDamagedIndexIsNeverTrusted(t *testing.T) {
	root, store, res := indexedTree(t)
	data, err := res.Index.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"d1/s1/f1": "edited", "d3/new": "new"})
	want := mustScan(t, newStore(), root, nil, &Options{Touched: []string{"d1/f1.o"}}).Tree
	r := rand.New(rand.NewPCG(1, 2))
	used := 0
	for i := range rounds(400) {
		bad := bytes.Clone(data)
		switch i % 4 {
		case 0:
			bad = bad[:r.IntN(len(bad))]
		case 1:
			bad = append(bad, make([]byte, 1+r.IntN(100))...)
		default:
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		x, err := ParseIndex(bad)
		if err != nil {
			if !errors.Is(err, ErrBadIndex) {
				t.Fatalf("error %v, want ErrBadIndex", err)
			}
			continue
		}
		used++
		got := mustScan(t, store, root, x, &Options{Touched: []string{"d1/f1.o"}})
		if got.Tree != want {
			t.Fatalf("case %d: tree by a damaged index differs: %v", i, changeList(got.Changed))
		}
	}
	if used == 0 {
		t.Error("no damaged index got as far as a scan")
	}
}

func TestOpenIndexErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenIndex(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v, want fs.ErrNotExist", err)
	}
	write(t, dir, map[string]string{"empty": "", "other": string(make([]byte, 500))})
	for _, name := range []string{"empty", "other"} {
		if _, err := OpenIndex(filepath.Join(dir, name)); !errors.Is(err, ErrBadIndex) {
			t.Errorf("%s: %v, want ErrBadIndex", name, err)
		}
	}
	_, _, res := indexedTree(t)
	data, err := res.Index.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for version := range byte(4) {
		data[len(indexMagic)] = version
		if _, err := ParseIndex(data); (version == indexVersion) != (err == nil) || err != nil && !errors.Is(err, ErrBadIndex) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if err := res.Index.Save(filepath.Join(dir, "no", "dir")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("save to nowhere: %v, want fs.ErrNotExist", err)
	}
}

func FuzzIndex(f *testing.F) {
	_, store, res := indexedTree(f)
	data, err := res.Index.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(indexMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &indexSource{r: bytes.NewReader(data)}
		src.end.Store(int64(len(data)))
		d := &indexDir{entries: []indexEntry{{name: "left over", sub: 5}}, subs: []*dirRef{{}}}
		if d.decode(data, src, 1<<40) == nil {
			places := make([]int64, len(d.subs))
			for i, sub := range d.subs {
				if at := sub.at.Load(); at != nil {
					places[i] = at.off
				}
			}
			if again := appendDir(nil, d, places); !bytes.Equal(again, data) {
				t.Errorf("decoded and encoded again: %x, want %x", again, data)
			}
		}
		x, err := ParseIndex(data)
		if err != nil {
			return
		}
		diff := differ{ctx: context.Background(), store: store, lenient: true}
		if err := diff.dirs("", x.root, &dirRef{}); err != nil {
			t.Error(err)
		}
	})
}
