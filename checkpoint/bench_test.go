//go:build unix

package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/sqlite"
)

// bench is a tree like that of a project, over a durable store, with a shadow
// repository of git beside it, as agents use one.
type bench struct {
	*fixture
	files   []string
	store   string
	compact func() // does what a store does when it is quiet
	shut    func() // closes the store
	git     string
	rnd     *rand.Rand
	ours    usage
	theirs  usage
}

// usage sums up what something took. On a busy machine the processor's time tells
// more than the clock's.
type usage struct{ wall, cpu time.Duration }

func (u *usage) add(o usage) { u.wall, u.cpu = u.wall+o.wall, u.cpu+o.cpu }

func newBench(b *testing.B, files int) *bench {
	b.Helper()
	store := filepath.Join(b.TempDir(), "store")
	db, err := sqlite.Open(b.Context(), store, nil)
	must(b, err)
	shut := sync.OnceFunc(func() { must(b, db.Close()) })
	b.Cleanup(shut)
	var layers *cached.Store // as the front door has them
	small := compressed.New(db.Blobs(), &compressed.Options{
		Later:  func(int64) {},
		Recall: func(id blob.ID) []byte { return layers.Peek(id) },
	})
	layers = cached.New(blob.Checked(small), nil)
	compact := func() {
		all, _, err := db.Blobs().Arrived(b.Context(), "", math.MaxInt32)
		must(b, err)
		_, err = small.Compact(b.Context(), db.Blobs(), all)
		must(b, err)
		must(b, db.Shrink(b.Context()))
	}
	x := &bench{
		fixture: &fixture{t: b, dir: b.TempDir(), blobs: layers, rows: db.Rows()},
		store:   store, compact: compact, shut: shut, git: filepath.Join(b.TempDir(), "shadow"), rnd: rand.New(rand.NewPCG(3, 3)),
	}
	x.opts.IndexDir = b.TempDir()
	for i := range files {
		x.files = append(x.files, fmt.Sprintf("pkg%03d/sub%02d/file_%05d.go", i/256, i/16%16, i))
		x.write(x.files[i], x.text())
	}
	x.shadow("init", "-q")
	x.reopen()
	return x
}

// phrases are what the files of a benchmark are made of; they compress about as
// well as source does.
var phrases = []string{
	"\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"%s: %w\", name, err)\n\t}\n", "\tfor i, v := range ", "// Package ",
	"func (s *Store) ", "(ctx context.Context, id string) (*Record, error) {\n", "\treturn ", "}\n\n", " := ", "\n", ", ", ".", "(",
}

// text makes lines out of phrases and words.
func (x *bench) text() string {
	buf := make([]byte, 0, 6800)
	for size := 200 + x.rnd.IntN(6400); len(buf) < size; {
		buf = append(buf, phrases[x.rnd.IntN(len(phrases))]...)
		n := x.rnd.Int64N(1 + x.rnd.Int64N(1000)) // some words come more often
		buf = strconv.AppendInt(buf, n*7919*7919, 36)
	}
	return string(buf)
}

// size returns the bytes that the files below a directory take on the disk.
func size(b *testing.B, dir string) (sum float64) {
	b.Helper()
	must(b, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		var st unix.Stat_t
		err = unix.Lstat(path, &st)
		sum += float64(st.Blocks) * 512
		return err
	}))
	return sum
}

// edit changes n files, spread over the tree, and returns their paths.
func (x *bench) edit(n int) []string {
	var out []string
	for i := range n {
		out = append(out, x.files[i*(len(x.files)/n)])
		x.write(out[i], x.text())
	}
	return out
}

func (x *bench) shadow(args ...string) {
	git(x.t, x.dir, append([]string{"-c", "gc.auto=0", "-c", "user.name=b", "-c", "user.email=b@localhost",
		"--git-dir=" + x.git, "--work-tree=" + x.dir}, args...)...)
}

func (x *bench) shadowCommit() {
	x.shadow("add", "-A")
	x.shadow("commit", "-q", "--allow-empty", "-m", "x")
}

// timed adds what fn takes, with the programs that it runs and waits for. Nothing
// is left to be written when it begins: who makes things durable would have to
// wait for what the other side left.
func timed(sum *usage, fn func()) {
	unix.Sync()
	start, cpu := time.Now(), cpuTime()
	fn()
	sum.wall += time.Since(start)
	sum.cpu += cpuTime() - cpu
}

// measured is timed, and marks the samples of a profile.
func (x *bench) measured(fn func()) {
	pprof.Do(x.t.Context(), pprof.Labels("side", "ours"), func(context.Context) { timed(&x.ours, fn) })
}

func cpuTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

func (x *bench) report(b *testing.B) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(ms(x.ours.wall), "ms/ours")
	b.ReportMetric(ms(x.theirs.wall), "ms/git")
	b.ReportMetric(ms(x.ours.cpu), "cpu-ms/ours")
	b.ReportMetric(ms(x.theirs.cpu), "cpu-ms/git")
	b.ReportMetric(float64(x.ours.wall)/float64(x.theirs.wall), "ours/git")
}

func benchSizes() []int {
	sizes := []int{1000, 10000}
	if testenv.Long() {
		sizes = append(sizes, 50000)
	}
	return sizes
}

// each runs a benchmark for all sizes of trees and of changes.
func each(b *testing.B, fn func(b *testing.B, x *bench, changed int)) {
	for _, files := range benchSizes() {
		for _, changed := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("files=%d/changed=%d", files, changed), func(b *testing.B) {
				x := newBench(b, files)
				x.save(Request{})
				x.shadowCommit()
				b.ResetTimer()
				fn(b, x, changed)
				x.report(b)
			})
		}
	}
}

// BenchmarkFirst captures a tree for the first time, durably, beside git's first
// commit, and compares what both keep.
func BenchmarkFirst(b *testing.B) {
	for _, files := range benchSizes() {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			sum := &bench{}
			var stored, shadow, content float64
			for range b.N {
				x := newBench(b, files)
				empty := size(b, x.git)
				x.measured(func() { x.save(Request{}) })
				timed(&x.theirs, x.shadowCommit)
				sum.ours.add(x.ours)
				sum.theirs.add(x.theirs)
				x.compact()
				x.shut() // which leaves one file
				stored += size(b, x.store)
				shadow += size(b, x.git) - empty
				content += size(b, x.dir)
			}
			sum.report(b)
			b.ReportMetric(stored/content, "stored/content")
			b.ReportMetric(stored/shadow, "stored/git")
		})
	}
}

// BenchmarkScan makes checkpoints by scanning, beside git's add and commit.
func BenchmarkScan(b *testing.B) {
	each(b, func(b *testing.B, x *bench, changed int) {
		for range b.N {
			x.edit(changed)
			x.measured(func() { x.save(Request{}) })
			timed(&x.theirs, x.shadowCommit)
		}
	})
}

// BenchmarkHints makes checkpoints of named paths, beside git's add and commit.
func BenchmarkHints(b *testing.B) {
	each(b, func(b *testing.B, x *bench, changed int) {
		for range b.N {
			paths := x.edit(changed)
			x.measured(func() { x.save(Request{Paths: paths}) })
			timed(&x.theirs, x.shadowCommit)
		}
	})
}

// BenchmarkRewind goes back over a number of files, durably and journaled, beside
// git's reset and clean, which are neither.
func BenchmarkRewind(b *testing.B) {
	each(b, func(b *testing.B, x *bench, changed int) {
		for range b.N {
			target := x.save(Request{Conversation: "c"})
			x.shadowCommit()
			paths := x.edit(changed)
			x.save(Request{Conversation: "c", Paths: paths})
			x.shadowCommit()
			x.measured(func() { x.rewind(RewindRequest{To: target.ID}) })
			for _, p := range paths { // git has to do the same work
				must(b, os.WriteFile(x.path(p), []byte("changed"), 0o644))
			}
			timed(&x.theirs, func() {
				x.shadow("reset", "-q", "--hard", "HEAD~1")
				x.shadow("clean", "-fdq") // files that were made since go, as in ours
			})
		}
	})
}
