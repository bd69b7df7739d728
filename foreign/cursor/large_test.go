//go:build linux

package cursor_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	"github.com/stet-dev/stet/internal/testenv"
)

// TestLargeFileIsListedFromTheIndex makes a file of about 300 MB (10 GB in a
// long run) and checks that listing its keys reads a small part of it and takes
// little memory.
func TestLargeFileIsListedFromTheIndex(t *testing.T) {
	const valueSize = 24 << 10
	rows := testenv.Scale(12_500, 420_000)
	path := filepath.Join(t.TempDir(), "state.vscdb")
	makeLarge(t, path, rows, valueSize)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := cursortest.Open(t, path, nil)
	for _, tt := range []struct {
		name string
		most int64 // bytes read
		list func() (int, error)
	}{
		{"keys", info.Size() / 50, func() (n int, err error) {
			for _, err := range s.Keys(t.Context(), "agentKv:blob:") {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}},
		{"measure", info.Size() / 3, func() (int, error) {
			usage, err := s.Measure(t.Context())
			return int(usage[0].Rows), err
		}},
		{"conversations", info.Size() / 100, func() (int, error) {
			for range s.Conversations(t.Context()) {
				return 0, errors.New("found a conversation")
			}
			return rows, nil
		}},
	} {
		before, memory, start := bytesRead(t), cursortest.Heap(), time.Now()
		n, err := tt.list()
		read, grown := bytesRead(t)-before, cursortest.Heap()-memory
		t.Logf("%s: %d rows of a file of %d MB in %v, %d MB read", tt.name, n, info.Size()>>20, time.Since(start).Round(time.Millisecond), read>>20)
		if err != nil || n != rows {
			t.Errorf("%s: %d rows, %v; want %d", tt.name, n, err, rows)
		}
		if read > tt.most {
			t.Errorf("%s read %d bytes, want at most %d", tt.name, read, tt.most)
		}
		if grown > 16<<20 {
			t.Errorf("%s left %d bytes on the heap", tt.name, grown)
		}
	}
}

// makeLarge writes the rows in random order of their keys, as hashes come.
func makeLarge(t *testing.T, path string, rows, size int) {
	t.Helper()
	db := cursortest.Create(t, path, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"+cursortest.EditorSchema+"BEGIN")
	s, _, err := db.Prepare("INSERT INTO cursorDiskKV VALUES (?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, size)
	for i := range rows {
		binary.LittleEndian.PutUint64(value, uint64(i))
		id := blob.Sum(value[:8])
		if err := errors.Join(s.BindText(1, "agentKv:blob:"+id.String()), s.BindBlob(2, value), s.Exec()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cursortest.Run(t, db, "COMMIT")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// bytesRead returns how many bytes this process has read.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "rchar: "); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no rchar in /proc/self/io")
	return 0
}

func TestValueAboveTheLimitIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	for _, size := range []int{1 << 20, 3<<20 + 5, 9 << 20} {
		b := blob.New(make([]byte, size))
		cursortest.Run(t, db, fmt.Sprintf("INSERT INTO cursorDiskKV VALUES ('agentKv:blob:%s', zeroblob(%d))", b.ID, size))
	}
	s := cursortest.Open(t, path, &cursor.Options{MaxValue: 8 << 20})
	for _, tt := range []struct {
		size int
		want error
	}{{1 << 20, nil}, {3<<20 + 5, nil}, {9 << 20, blob.ErrTooLarge}} {
		id := blob.Sum(make([]byte, tt.size))
		data, err := s.Blobs().Get(t.Context(), id)
		if !errors.Is(err, tt.want) || (err == nil && len(data) != tt.size) {
			t.Errorf("%d bytes: %d, %v; want %v", tt.size, len(data), err, tt.want)
		}
	}
}
