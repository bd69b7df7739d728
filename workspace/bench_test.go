package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
)

// scanOnly is Scan, or ScanPaths if there are paths. It checks nothing else, unlike mustScan,
// which walks the whole tree for that.
func scanOnly(b *testing.B, store blob.Store, root string, prev *Index, paths ...string) *Result {
	b.Helper()
	var res *Result
	var err error
	if paths == nil {
		res, err = Scan(b.Context(), store, root, prev, nil)
	} else {
		res, err = ScanPaths(b.Context(), store, root, prev, paths, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	return res
}

// benchTree makes a tree like that of a project: 16 files a directory, 3.4 KB on
// average.
func benchTree(b *testing.B, files int) string {
	b.Helper()
	root := b.TempDir()
	r := rand.New(rand.NewPCG(9, 9))
	buf := make([]byte, 16<<10)
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("pkg%03d/sub%02d", i/256, i/16%16))
		if i%16 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		n := 200 + r.IntN(6400)
		for k := range n {
			buf[k] = "the quick brown fox jumps over\n"[r.IntN(31)]
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file_%05d.go", i)), buf[:n], 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

func benchFiles() int { return testenv.Scale(10000, 50000) }

// shadowGit is what agents use instead: a repository beside the tree.
type shadowGit struct{ dir, root string }

func newShadowGit(b *testing.B, root string) shadowGit {
	b.Helper()
	g := shadowGit{filepath.Join(b.TempDir(), "shadow"), root}
	g.run(b, "init", "-q")
	return g
}

func (g shadowGit) run(b *testing.B, args ...string) time.Duration {
	b.Helper()
	start := time.Now()
	out, err := git(g.root, "", append([]string{"-c", "gc.auto=0", "-c", "maintenance.auto=false", "--git-dir=" + g.dir, "--work-tree=" + g.root}, args...)...)
	if err != nil {
		b.Fatalf("git %v: %v: %s", args, err, out)
	}
	return time.Since(start)
}

func (g shadowGit) commit(b *testing.B) time.Duration {
	b.Helper()
	return g.run(b, "add", "-A") + g.run(b, "commit", "-q", "--allow-empty", "-m", "x")
}

// report prints the time of one operation beside git's.
func report(b *testing.B, ours, theirs time.Duration) {
	b.ReportMetric(float64(ours.Microseconds())/1000/float64(b.N), "ms/ours")
	b.ReportMetric(float64(theirs.Microseconds())/1000/float64(b.N), "ms/git")
	b.ReportMetric(float64(ours)/float64(theirs), "ours/git")
}

func BenchmarkFirstCapture(b *testing.B) {
	root := benchTree(b, benchFiles())
	var ours, theirs time.Duration
	for b.Loop() {
		start := time.Now()
		scanOnly(b, newStore(), root, nil)
		ours += time.Since(start)
		theirs += newShadowGit(b, root).commit(b)
	}
	report(b, ours, theirs)
}

func BenchmarkScan(b *testing.B) {
	root, store := benchTree(b, benchFiles()), newStore()
	g := newShadowGit(b, root)
	g.commit(b)
	for _, changed := range []int{0, 1, 10, 1000} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			res := scanOnly(b, store, root, nil)
			var ours, theirs time.Duration
			for round := 0; b.Loop(); round++ {
				edits := edited(changed, round)
				write(b, root, edits)
				time.Sleep(10 * time.Millisecond) // as an agent does before its next step
				start := time.Now()
				res = scanOnly(b, store, root, res.Index)
				ours += time.Since(start)
				if int(res.Stats.Read) != changed {
					b.Fatalf("read %d files, want %d", res.Stats.Read, changed)
				}
				theirs += g.commit(b)
			}
			report(b, ours, theirs)
		})
	}
}

// BenchmarkUnchanged is the scan alone, for profiles.
func BenchmarkUnchanged(b *testing.B) {
	root, store := benchTree(b, benchFiles()), newStore()
	res := scanOnly(b, store, root, nil)
	for b.Loop() {
		scanOnly(b, store, root, res.Index)
	}
}

// BenchmarkOpened is a scan that finds nothing changed, with the index read from its
// file as a command does.
func BenchmarkOpened(b *testing.B) {
	for name, seal := range map[string]Sealer{"plain": nil, "sealed": newTestKeys()} {
		b.Run(name, func(b *testing.B) {
			root, store := benchTree(b, benchFiles()), newStore()
			path := filepath.Join(b.TempDir(), "index")
			if err := scanOnly(b, store, root, nil).Index.SaveSealed(path, seal); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				x, err := OpenSealedIndex(path, seal)
				if err != nil {
					b.Fatal(err)
				}
				scanOnly(b, store, root, x)
				if err := x.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHints captures one edited file by name, with the index saved before
// and after as a command does.
func BenchmarkHints(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchHints(b, nil) })
	b.Run("sealed", func(b *testing.B) { benchHints(b, newTestKeys()) })
}

func benchHints(b *testing.B, seal Sealer) {
	root, store := benchTree(b, benchFiles()), newStore()
	path := filepath.Join(b.TempDir(), "index")
	if err := scanOnly(b, store, root, nil).Index.SaveSealed(path, seal); err != nil {
		b.Fatal(err)
	}
	var ours time.Duration
	for round := 0; b.Loop(); round++ {
		write(b, root, edited(1, round))
		start := time.Now()
		prev, err := OpenSealedIndex(path, seal)
		if err != nil {
			b.Fatal(err)
		}
		res := scanOnly(b, store, root, prev, editedName(0))
		if err := res.Index.SaveSealed(path, seal); err != nil {
			b.Fatal(err)
		}
		if err := prev.Close(); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		if len(res.Changed) != 1 {
			b.Fatalf("changed %v", changeList(res.Changed))
		}
	}
	b.ReportMetric(float64(ours.Microseconds())/1000/float64(b.N), "ms/ours")
}

func editedName(i int) string {
	n := i * 7
	return fmt.Sprintf("pkg%03d/sub%02d/file_%05d.go", n/256, n/16%16, n)
}

func edited(n, round int) map[string]string {
	edits := map[string]string{}
	for i := range n {
		edits[editedName(i)] = fmt.Sprintf("edit %d of file %d\n", round, i)
	}
	return edits
}
