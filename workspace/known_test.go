package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/testenv"
)

// upset does what mutate does, and what matters to a scan that takes names from
// the index: rules that change, names that no tree holds, times that are set back.
func upset(t *testing.T, r *rand.Rand, root string) []string {
	t.Helper()
	names := []string{"a", "b", "c.txt", "d\xfe", ".hid"}
	dir := ""
	if r.IntN(3) > 0 {
		dir = names[r.IntN(2)]
	}
	at := func(name string) string { return filepath.Join(root, dir, name) }
	name := names[r.IntN(len(names))]
	_ = os.MkdirAll(at(""), 0o755) // fails where a file is: then so does the rest
	switch r.IntN(9) {
	case 0:
		lines := []string{"a", "*.txt", "b/", "!a", "/c.txt", ".hid", "a/b", "git~1", "fifo"}
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		name = []string{gitIgnoreName, stetIgnoreName}[r.IntN(2)]
		_ = os.WriteFile(at(name), []byte(strings.Join(lines[:r.IntN(4)], "\n")), 0o644)
	case 1:
		name = []string{gitIgnoreName, stetIgnoreName}[r.IntN(2)]
		_ = os.Remove(at(name))
	case 2:
		name = "fifo"
		_ = mkfifo(at(name))
	case 3:
		name = []string{"git~1", "CON", ".git", StagePrefix + "x"}[r.IntN(4)]
		_ = os.WriteFile(at(name), []byte("x"), 0o644)
	case 4:
		_ = os.WriteFile(at(name), make([]byte, 2000+r.IntN(4000)), 0o644)
	case 5:
		name = []string{"fifo", "git~1", "CON"}[r.IntN(3)]
		_ = os.Remove(at(name))
	case 6: // as editors save
		aside := filepath.Join(t.TempDir(), "aside")
		_ = os.WriteFile(aside, []byte(fmt.Sprint(r.IntN(100))), 0o644)
		_ = os.Rename(aside, at(name))
	case 7:
		if info, err := os.Stat(at("")); err == nil {
			_ = os.WriteFile(at(name), []byte("x"), 0o644)
			_ = os.Chtimes(at(""), time.Time{}, info.ModTime())
		}
	default:
		return mutate(t, r, root)
	}
	return []string{join(dir, name)}
}

// A scan that takes names from the index finds what one finds that lists every
// directory, by the same index and by one that knows nothing but the tree.
func TestRandomTreesByKnownNames(t *testing.T) {
	believed := int64(0)
	for seed := range testenv.Scale(12, 400) {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		root, store := t.TempDir(), newStore()
		opts := &Options{MaxFile: 3000}
		prev := mustScan(t, store, root, nil, opts).Index
		for step := range 15 {
			var paths []string
			for range r.IntN(8) {
				paths = append(paths, upset(t, r, root)...)
			}
			if r.IntN(3) == 0 {
				letTick()
			}
			if r.IntN(3) == 0 {
				prev = restored(t, prev)
			}
			if seed%2 == 0 && r.IntN(4) == 0 {
				opts.Touched = append(opts.Touched, []string{"a/b", "c.txt", "b", "a/a/c.txt", "b/fifo"}[r.IntN(5)])
			}
			what := fmt.Sprintf("seed %d step %d", seed, step)
			if r.IntN(3) == 0 {
				hinted := mustScanPaths(t, store, root, prev, paths, opts)
				sameFinds(t, what+" hinted", hinted, mustScanPaths(t, store, root, doubting(prev), paths, opts))
				prev = hinted.Index
				continue
			}
			got := mustScan(t, store, root, prev, opts)
			sameFinds(t, what, got, mustScan(t, store, root, doubting(prev), opts))
			if len(opts.Touched) == 0 {
				fresh := mustScan(t, store, root, NewIndex(prev.Tree()), opts)
				sameFinds(t, what+" afresh", got, fresh)
			}
			believed += got.Stats.Dirs - got.Stats.listed
			prev = got.Index
		}
	}
	if believed == 0 && stampsTell(t, t.TempDir()) {
		t.Error("every directory was listed each time")
	}
}

func sameFinds(t *testing.T, what string, got, want *Result) {
	t.Helper()
	if got.Tree != want.Tree || !slices.Equal(changeList(got.Changed), changeList(want.Changed)) {
		t.Fatalf("%s: changed %q, want %q (the same tree: %v)", what, changeList(got.Changed), changeList(want.Changed), got.Tree == want.Tree)
	}
	if !slices.Equal(got.NotCaptured, want.NotCaptured) {
		t.Fatalf("%s: left out %v, want %v", what, got.NotCaptured, want.NotCaptured)
	}
}

// restored returns the index as a later process reads it.
func restored(t *testing.T, x *Index) *Index {
	t.Helper()
	data, err := x.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseIndex(data)
	if err != nil {
		t.Fatal(err)
	}
	return back
}
