package cursor_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

// picture returns the names and hashes of the files in a directory.
func picture(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return out
}

// layouts are the ways in which a database can lie on disk while nobody has it
// open: what was written last may be in the file, or in the WAL alone.
var layouts = map[string]struct {
	pragma string
	files  []string // copied while a writer has them open; nil: after it closed
}{
	"rollback journal":       {"PRAGMA journal_mode=DELETE", nil},
	"wal mode without a wal": {"PRAGMA journal_mode=WAL", nil},
	"wal without its index":  {"PRAGMA journal_mode=WAL", []string{"", "-wal"}},
	"wal with its index":     {"PRAGMA journal_mode=WAL", []string{"", "-wal", "-shm"}},
}

// layOut makes a store of 50 blobs in one of the layouts.
func layOut(t testing.TB, name string) string {
	t.Helper()
	l := layouts[name]
	source := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, source, l.pragma+";"+cursortest.EditorSchema)
	cursortest.Run(t, db, "PRAGMA wal_autocheckpoint=0; BEGIN")
	for i := range 50 {
		b := numbered(i)
		cursortest.Insert(t, db, "agentKv:blob:"+b.ID.String(), b.Data)
	}
	cursortest.Run(t, db, "COMMIT")
	if l.files == nil {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return source
	}
	dir := t.TempDir()
	for _, suffix := range l.files {
		data, err := os.ReadFile(source + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "state.vscdb"+suffix), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "state.vscdb")
}

func numbered(i int) blob.Blob { return blob.New(fmt.Appendf(nil, "blob number %d", i)) }

// readNumbered reads the blobs 0 to n-1.
func readNumbered(ctx context.Context, s *cursor.Store, n int) error {
	for i := range n {
		b := numbered(i)
		data, err := s.Blobs().Get(ctx, b.ID)
		if err != nil || string(data) != string(b.Data) {
			return fmt.Errorf("blob %d = %q, %w", i, data, err)
		}
	}
	return nil
}

func TestReadingLeavesNoTrace(t *testing.T) {
	for name := range layouts {
		t.Run(name, func(t *testing.T) {
			path := layOut(t, name)
			before := picture(t, filepath.Dir(path))
			s := cursortest.Open(t, path, nil)
			if err := readNumbered(t.Context(), s, 50); err != nil {
				t.Error(err)
			}
			if _, err := s.Verify(t.Context(), nil); err != nil {
				t.Error(err)
			}
			during := picture(t, filepath.Dir(path))
			s.Close()
			after := picture(t, filepath.Dir(path))
			delete(before, "state.vscdb-shm") // shared memory; readers mark their place in it
			delete(during, "state.vscdb-shm")
			delete(after, "state.vscdb-shm")
			if d := cmp.Diff(before, during) + cmp.Diff(before, after); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSymlinkLeadsToTheWAL(t *testing.T) {
	path := layOut(t, "wal without its index")
	link := filepath.Join(t.TempDir(), "elsewhere.vscdb")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := readNumbered(t.Context(), cursortest.Open(t, link, nil), 50); err != nil {
		t.Error(err)
	}
}

func TestReplacedFileIsNoticed(t *testing.T) {
	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	s := cursortest.Open(t, path, nil)
	if _, err := s.Value(t.Context(), "composerData:"+cursortest.Current); err != nil {
		t.Fatal(err)
	}
	other := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Value(t.Context(), "composerData:"+cursortest.Current); !errors.Is(err, cursor.ErrReplaced) {
		t.Errorf("after the file was replaced: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Value(t.Context(), "composerData:"+cursortest.Current); !errors.Is(err, cursor.ErrReplaced) {
		t.Errorf("after the file was removed: %v", err)
	}
}

// TestWritersAndReadersDoNotDisturbEachOther writes through a connection of its
// own while others read: no writer may fail, no reader may see other bytes.
func TestWritersAndReadersDoNotDisturbEachOther(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.vscdb")
			cursortest.Create(t, path, "PRAGMA journal_mode="+mode+";"+cursortest.EditorSchema).Close()
			s := cursortest.Open(t, path, nil)
			const total = 120
			ctx, cancel := context.WithCancel(t.Context())
			var readers sync.WaitGroup
			for range 2 {
				readers.Go(func() {
					for ctx.Err() == nil {
						if err := readListed(ctx, s); err != nil && ctx.Err() == nil {
							t.Error(err)
							return
						}
					}
				})
			}
			db := cursortest.Create(t, path, "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=20")
			for i := range total {
				cursortest.Insert(t, db, "agentKv:blob:"+numbered(i).ID.String(), numbered(i).Data)
				if i%30 == 29 { // the last connection to close takes the WAL away
					if err := db.Close(); err != nil {
						t.Fatal(err)
					}
					db = cursortest.Create(t, path, "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=20")
				}
			}
			cancel()
			readers.Wait()
			if err := readNumbered(t.Context(), s, total); err != nil {
				t.Error(err)
			}
		})
	}
}

// readListed reads every blob that the store lists.
func readListed(ctx context.Context, s *cursor.Store) error {
	b := s.Blobs()
	return b.(blob.Lister).List(ctx, blob.ID{}, func(info blob.Info) error {
		_, err := b.Get(ctx, info.ID)
		return err
	})
}

func TestLockedFileIsBusy(t *testing.T) {
	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	s := cursortest.Open(t, path, &cursor.Options{BusyTimeout: 20 * time.Millisecond})
	db := cursortest.Create(t, path, "BEGIN EXCLUSIVE")
	if _, err := s.Value(t.Context(), "x"); !errors.Is(err, cursor.ErrBusy) {
		t.Errorf("while locked: %v, want ErrBusy", err)
	}
	cursortest.Run(t, db, "COMMIT")
	if _, err := s.Value(t.Context(), "x"); !errors.Is(err, cursor.ErrNotFound) {
		t.Errorf("afterwards: %v, want ErrNotFound", err)
	}
}

func TestHotJournalNeedsItsOwner(t *testing.T) {
	source := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, source, cursortest.EditorSchema+"PRAGMA cache_size=2; PRAGMA cache_spill=2; BEGIN")
	for i := range 200 {
		cursortest.Insert(t, db, fmt.Sprintf("k%d", i), make([]byte, 2000))
	}
	cursortest.Run(t, db, "COMMIT; BEGIN; UPDATE cursorDiskKV SET value = zeroblob(1999)")
	dir := t.TempDir()
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(source + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "state.vscdb"+suffix), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cursortest.Run(t, db, "ROLLBACK")
	before := picture(t, dir)
	_, err := cursor.Open(t.Context(), filepath.Join(dir, "state.vscdb"), nil)
	if !errors.Is(err, cursor.ErrNeedsRecovery) {
		t.Errorf("Open = %v, want ErrNeedsRecovery", err)
	}
	if d := cmp.Diff(before, picture(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestDoneContextAndClosedStore(t *testing.T) {
	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	s := cursortest.Open(t, path, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cursor.Open(ctx, path, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v", err)
	}
	if _, err := s.Conversation(ctx, cursortest.Current); !errors.Is(err, context.Canceled) {
		t.Errorf("Conversation = %v", err)
	}
	if _, err := s.Verify(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify = %v", err)
	}
	s.Close()
	if _, err := s.Conversation(t.Context(), cursortest.Current); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
