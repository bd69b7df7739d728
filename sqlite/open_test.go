package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// filled returns the directory of a closed store with one row and two blobs.
func filled(t *testing.T) (dir string, small, large blob.Blob) {
	t.Helper()
	dir = t.TempDir()
	db, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	small, large = blob.New([]byte("small")), blob.New(bytes.Repeat([]byte("large"), 100_000))
	if err := db.Blobs().Put(t.Context(), small, large); err != nil {
		t.Fatal(err)
	}
	batch := &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}, Refs: []blob.ID{small.ID, large.ID}}
	if err := db.Rows().Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, small, large
}

func TestReopen(t *testing.T) {
	dir, small, large := filled(t)
	db, err := Open(t.Context(), dir, &Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, want := range []blob.Blob{small, large} {
		got, err := db.Blobs().Get(t.Context(), want.ID)
		if err != nil || !bytes.Equal(got, want.Data) {
			t.Errorf("Get(%s) = %d bytes, %v", want.ID.Short(), len(got), err)
		}
	}
	row, err := db.Rows().Get(t.Context(), "k")
	if err != nil || string(row.Value) != "v" {
		t.Errorf("row k = %q, %v", row.Value, err)
	}
}

// snapshot reads all files of a directory, to show that a refusal changed none.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRefusals(t *testing.T) {
	patch := func(name string, offset int64, with []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(with, offset); err != nil {
				t.Fatal(err)
			}
		}
	}
	truncate := func(size int64) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, databaseName), size); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name   string
		damage func(*testing.T, string)
		want   error
	}{
		{"empty database", truncate(0), ErrDamaged},
		{"half a header", truncate(50), ErrDamaged},
		{"first page only", truncate(4096), ErrDamaged},
		{"lost last page", func(t *testing.T, dir string) {
			info, err := os.Stat(filepath.Join(dir, databaseName))
			if err != nil {
				t.Fatal(err)
			}
			truncate(info.Size()-1)(t, dir)
		}, ErrDamaged},
		{"not a database", patch(databaseName, 0, []byte("hello")), ErrDamaged},
		{"another application", patch(databaseName, 68, []byte{0, 0, 0, 1}), ErrForeign},
		{"newer format", patch(databaseName, 60, binary.BigEndian.AppendUint32(nil, FormatVersion+1)), ErrNewerFormat},
		{"objects of another store", patch(objectsName+"/"+storeFileName, 0, []byte("0000")), ErrDamaged},
		{"missing database", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, databaseName)); err != nil {
				t.Fatal(err)
			}
		}, ErrDamaged},
		{"missing objects", func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, objectsName)); err != nil {
				t.Fatal(err)
			}
		}, ErrDamaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, _, _ := filled(t)
			test.damage(t, dir)
			before := snapshot(t, dir)
			db, err := Open(t.Context(), dir, nil)
			if !errors.Is(err, test.want) {
				t.Errorf("Open = %v, want %v", err, test.want)
			}
			if err == nil {
				db.Close()
			}
			after := snapshot(t, dir)
			for path, content := range before {
				if after[path] != content {
					t.Errorf("the refusal changed %s", path)
				}
			}
		})
	}
}

func TestRefusesOtherDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("Open in a used directory = %v, want ErrForeign", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("Open left %v, %v in a directory that it refused", entries, err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "thesis.txt"), nil); !errors.Is(err, ErrForeign) {
		t.Errorf("Open on a file = %v, want ErrForeign", err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "none"), &Options{MustExist: true}); !errors.Is(err, ErrNoStore) {
		t.Errorf("Open of nothing = %v, want ErrNoStore", err)
	}
}

func TestCreationByManyAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			db, err := Open(context.Background(), dir, nil)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = db.ID()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("store ids %q", ids)
		}
	}
}

// A process that wants to create a store waits for the one that does, and not for its end:
// whoever uses a store keeps the lock.
func TestCreationDoesNotWaitForTheEndOfAnother(t *testing.T) {
	made, _, _ := filled(t)
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, lockName))
	defer lock.Close()
	if err := lock.RLock(); err != nil { // as a process that has the store open
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		db, err := Open(t.Context(), dir, &Options{BusyTimeout: 5 * time.Second})
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	time.Sleep(50 * time.Millisecond) // it looks before the database is there
	for _, name := range []string{objectsName, databaseName} {
		if err := os.Rename(filepath.Join(made, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-opened; err != nil {
		t.Errorf("the store was not opened: %v", err)
	}
}

// The second of two creators answers for names that the first may not have made durable.
func TestTheSecondCreatorSyncsNames(t *testing.T) {
	dir, _, _ := filled(t)
	dirs := &syncedDirs{}
	db := &DB{dir: dir, opts: Options{files: dirs}}
	if err := db.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{dir, filepath.Dir(dir)}; !slices.Equal(dirs.synced, want) {
		t.Errorf("synced %q, want %q", dirs.synced, want)
	}
}

// syncedDirs records the directories that are synced.
type syncedDirs struct {
	osFiles
	synced []string
}

func (f *syncedDirs) SyncDir(dir string) error {
	f.synced = append(f.synced, dir)
	return f.osFiles.SyncDir(dir)
}

func TestCreationThatWasKilled(t *testing.T) {
	dir := t.TempDir()
	leftover := filepath.Join(dir, databaseName+newSuffix)
	if err := os.WriteFile(leftover, []byte("half a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leftover of the killed creation: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	dir, small, _ := filled(t)
	db, err := Open(t.Context(), dir, &Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Blobs().Get(t.Context(), small.ID); err != nil {
		t.Error(err)
	}
	if err := db.Blobs().Put(t.Context(), blob.New([]byte("new"))); !errors.Is(err, blob.ErrReadOnly) {
		t.Errorf("Put = %v, want ErrReadOnly", err)
	}
	if err := db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k"}}}); !errors.Is(err, blob.ErrReadOnly) {
		t.Errorf("Commit = %v, want ErrReadOnly", err)
	}
}

func TestUseAfterClose(t *testing.T) {
	db := openTest(t, nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Rows().Get(t.Context(), "k"); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("Get = %v, want ErrClosed", err)
	}
	if err := db.Blobs().Put(t.Context(), blob.New(nil)); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("Put = %v, want ErrClosed", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close = %v", err)
	}
}

// TestADatabaseThatIsRemovedWhileItIsUsed has nothing to wait for: a process that uses the
// store keeps it locked.
func TestADatabaseThatIsRemovedWhileItIsUsed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system renames no file that is open")
	}
	db := openTest(t, nil)
	if err := os.Rename(db.path(), db.path()+".away"); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), db.dir, &Options{BusyTimeout: 20 * time.Millisecond})
	if err == nil {
		other.Close()
	}
	if !errors.Is(err, kv.ErrBusy) {
		t.Errorf("Open = %v, want ErrBusy", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, db.dir, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open = %v, want the end of its context", err)
	}
	if err := os.Rename(db.path()+".away", db.path()); err != nil {
		t.Fatal(err)
	}
}
