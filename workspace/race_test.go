package workspace

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/testenv"
)

// A file of slots, far apart, that a writer fills in turn with rising numbers.
// After write k the slot of k holds k, that of k-1 holds k-1 and so on: whatever
// moment a reader catches, it can tell whether it saw one moment or two.
type slotFile struct {
	slots  uint64 // a power of two
	stride int64
	pause  int // the longest pause between two bursts of writes, in microseconds
}

// slotOf gives the place of write k. It jumps, since a reader that overtakes a
// writer going its way would see a single moment after all.
func (s slotFile) slotOf(k uint64) int64 { return int64(k*197%s.slots) * s.stride }

func (s slotFile) create(t *testing.T, path string) *os.File {
	t.Helper()
	data := make([]byte, int64(s.slots)*s.stride)
	for i := range s.slots {
		binary.BigEndian.PutUint64(data[s.slotOf(i):], i)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// keepWriting writes in bursts with pauses, longer and shorter than the tick of
// the stamping clock, until stop is closed.
func (s slotFile) keepWriting(t *testing.T, f *os.File, stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(1, 1))
	k := s.slots
	for {
		for range r.IntN(2000) {
			if _, err := f.WriteAt(binary.BigEndian.AppendUint64(nil, k), s.slotOf(k)); err != nil {
				t.Error(err)
				return
			}
			k++
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(r.IntN(s.pause)) * time.Microsecond):
		}
	}
}

// oneMoment reports whether a content of slots is from a single moment.
func (s slotFile) oneMoment(data []byte) bool {
	var last uint64
	for i := range s.slots {
		last = max(last, binary.BigEndian.Uint64(data[s.slotOf(i):]))
	}
	for back := range s.slots {
		k := last - back
		if binary.BigEndian.Uint64(data[s.slotOf(k):]) != k {
			return false
		}
	}
	return true
}

// A writer that changes a file in place never gets a mixture of two moments into
// a tree.
func TestScanNeverStoresTornFiles(t *testing.T) {
	t.Run("whole", func(t *testing.T) { tornFiles(t, slotFile{512, 4096, 8000}, testenv.Scale(40, 3000)) })
	t.Run("chunked", func(t *testing.T) { tornFiles(t, slotFile{1024, 9000, 300000}, testenv.Scale(4, 1000)) })
}

func tornFiles(t *testing.T, s slotFile, rounds int) {
	root := t.TempDir()
	f := s.create(t, filepath.Join(root, "f"))
	defer f.Close()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { s.keepWriting(t, f, stop) })
	var captured, left, reread int64
	for round := range rounds + 1 {
		if round == rounds { // at last the file is left in peace
			close(stop)
			wg.Wait()
		}
		store := newStore()
		res := mustScan(t, store, root, nil, nil)
		reread += res.Stats.Reread
		e, err := Lookup(context.Background(), store, res.Tree, "f")
		if errors.Is(err, fs.ErrNotExist) && round < rounds {
			wantList(t, "not captured", skippedList(res.NotCaptured), "f: changing")
			left++
			continue
		}
		data, err := ReadFile(context.Background(), store, e)
		if err != nil {
			t.Fatal(err)
		}
		if !s.oneMoment(data) {
			t.Fatal("a torn file was stored")
		}
		captured++
	}
	t.Logf("captured %d times, read again %d times, left out %d times", captured, reread, left)
}

// While directories are swapped for links that lead outside, and files come and
// go, a scan stays inside and does not fail.
func TestScanStaysInsideWhileNamesChange(t *testing.T) {
	base, store := t.TempDir(), newStore()
	root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	write(t, outside, map[string]string{"x/secret": "SECRET", "secret": "SECRET"})
	write(t, root, map[string]string{"d/x/inner": "inner", "e/f": "f"})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		d, parked := filepath.Join(root, "d"), filepath.Join(base, "parked")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(d, parked)
			_ = os.Symlink(outside, d)
			_ = os.Remove(d)
			_ = os.Rename(parked, d)
		}
	})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.WriteFile(filepath.Join(root, "e", "tmp"), []byte("come and go"), 0o644)
			_ = os.Remove(filepath.Join(root, "e", "tmp"))
		}
	})
	var prev *Index
	scans := testenv.Scale(300, 20000)
	if testenv.SlowFiles() {
		scans = 6
	}
	for i := range scans {
		if i%3 == 0 {
			prev = nil
		}
		if i%3 == 2 {
			prev = mustScanPaths(t, store, root, prev, []string{"d/x/secret", "d/secret", "e/tmp"}, nil).Index
			continue
		}
		prev = mustScan(t, store, root, prev, nil).Index
	}
	close(stop)
	wg.Wait()
	for _, data := range store.blobs {
		if strings.Contains(string(data), "SECRET") {
			t.Fatal("a file outside the root was captured")
		}
	}
}

// A scan reports what it does, and not after it returned.
func TestScanProgress(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"a/b": "x"})
	slow := &slowStore{mapStore: newStore()}
	var mu sync.Mutex
	calls, returned := 0, false
	_, err := Scan(context.Background(), slow, root, nil, &Options{ProgressEvery: time.Millisecond, Progress: func(s Stats) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if returned {
			t.Error("progress after the scan returned")
		}
	}})
	mu.Lock()
	defer mu.Unlock()
	returned = true
	if err != nil || calls == 0 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

// A file system whose clock is a little ahead, or a clock that was set back, makes
// new files no files that keep changing.
func TestSettleUnderAnotherClock(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"a": "a"})
	d, err := openRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	f, err := d.openFile("a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	st, err := f.stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{500 * time.Millisecond, time.Hour} {
		clock := func() int64 { return st.ctime - int64(ahead) }
		if _, weak, err := awaitStable(f, clock(), clock); !weak || err != nil {
			t.Errorf("ahead by %v: weak %v, %v", ahead, weak, err)
		}
	}
	// The file changes with each look, and the clock stays behind it, however long a look takes.
	clock := func() int64 {
		seen, err := f.stat()
		if err == nil {
			err = os.Chtimes(filepath.Join(root, "a"), time.Time{}, time.Unix(0, seen.mtime+1_000_300))
		}
		if err != nil {
			t.Error(err)
		}
		return seen.ctime - int64(500*time.Millisecond)
	}
	got, _, err := awaitStable(f, clock(), clock)
	wholeMS := got.ctime%int64(time.Millisecond) == 0 // looks like a coarse stamp, by chance
	if !errors.Is(err, errChanging) && !wholeMS {
		t.Errorf("a file that changes: %v, want errChanging", err)
	}
}
