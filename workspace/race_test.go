package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/testenv"
)

// version is a content that tells whether it is whole: n repeated, then a sum.
func version(n uint64, size int) []byte {
	body := bytes.Repeat(binary.BigEndian.AppendUint64(nil, n), size/8)
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

func wholeVersion(data []byte) bool {
	if len(data) < 32 {
		return false
	}
	body := data[:len(data)-32]
	return sha256.Sum256(body) == [32]byte(data[len(data)-32:])
}

// A writer that overwrites a file in place, page by page, with and without
// pauses, never gets a mixture of two versions into a tree.
func TestScanNeverStoresTornFiles(t *testing.T) {
	root, store := t.TempDir(), newStore()
	path := filepath.Join(root, "f")
	const size = 64 << 10
	if err := os.WriteFile(path, version(0, size), 0o644); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { overwrite(t, path, size, stop) })
	var prev *Index
	seen := map[[32]byte]bool{}
	captured, left := 0, 0
	for range testenv.Scale(120, 3000) {
		res := mustScan(t, store, root, prev, nil)
		prev = res.Index
		e, err := Lookup(context.Background(), store, res.Tree, "f")
		if errors.Is(err, fs.ErrNotExist) {
			wantList(t, "not captured", skippedList(res.NotCaptured), "f: changing")
			left++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := ReadFile(context.Background(), store, e)
		if err != nil {
			t.Fatal(err)
		}
		if !wholeVersion(data) {
			t.Fatal("a torn file was stored")
		}
		captured++
		seen[e.ID] = true
	}
	close(stop)
	wg.Wait()
	t.Logf("captured %d times, %d versions, %d times left out", captured, len(seen), left)
	if len(seen) < 5 {
		t.Errorf("only %d versions captured", len(seen))
	}
}

func overwrite(t *testing.T, path string, size int, stop <-chan struct{}) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	for n := uint64(1); ; n++ {
		data := version(n, size)
		for off := 0; off < len(data); off += 4096 {
			if _, err := f.WriteAt(data[off:min(off+4096, len(data))], int64(off)); err != nil {
				t.Error(err)
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(n%4) * 3 * time.Millisecond):
		}
	}
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
	for i := range testenv.Scale(300, 20000) {
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
