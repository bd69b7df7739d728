package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// crashNow returns the directory of a store as it is found when the power goes
// now and nothing arrived that was not synced.
func crashNow(t *testing.T, rec *recorder) string {
	t.Helper()
	p := newPlatter()
	rec.mu.Lock()
	for _, c := range rec.changes {
		p.apply(c)
	}
	rec.mu.Unlock()
	dir := memoryDir(t)
	if err := p.image(damage{}).write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestObjectInDirectoryOfAnother puts an object into a directory that another
// writer has made a moment ago and not synced yet, or did not live to sync.
func TestObjectInDirectoryOfAnother(t *testing.T) {
	rec := newRecorder(t, memoryDir(t))
	db, err := Open(t.Context(), rec.root, rec.options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	large := blob.New(bytes.Repeat([]byte("x"), crashObjectSize))
	if err := (recFiles{rec}).MkdirAll(filepath.Dir(db.objects.path(large.ID, "s"))); err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().Put(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	if err := db.Rows().Commit(t.Context(), &kv.Batch{Refs: []blob.ID{large.ID}}); err != nil {
		t.Fatal(err)
	}
	after, err := Open(t.Context(), crashNow(t, rec), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if got, err := after.Blobs().Get(t.Context(), large.ID); err != nil || !bytes.Equal(got, large.Data) {
		t.Errorf("after the crash the object has %d bytes, %v", len(got), err)
	}
}

// TestCreationInNewDirectories opens a store below directories that do not exist.
func TestCreationInNewDirectories(t *testing.T) {
	root := memoryDir(t)
	rec := newRecorder(t, root)
	db, err := Open(context.Background(), filepath.Join(root, "a/b/c"), rec.options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := os.Stat(filepath.Join(crashNow(t, rec), "a/b/c", databaseName)); err != nil {
		t.Errorf("after the crash: %v", err)
	}
}

// TestReplaceInDoubt kills the process after a replacement whose commit could not
// be synced: the row may name the new file or the old one.
func TestReplaceInDoubt(t *testing.T) {
	rec := newRecorder(t, memoryDir(t))
	db, err := Open(t.Context(), rec.root, rec.options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	old := blob.New(bytes.Repeat([]byte("old"), crashObjectSize))
	fresh := bytes.Repeat([]byte("new"), crashObjectSize)
	if err := db.Blobs().Put(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec.setFault(func(c change) error {
		if c.op == opSync && strings.HasSuffix(c.path, "-wal") {
			return syscall.EIO
		}
		return nil
	})
	if err := db.Blobs().ReplaceFrom(t.Context(), old.ID, bytes.NewReader(fresh), int64(len(fresh))); !errors.Is(err, syscall.EIO) {
		t.Errorf("Replace = %v, want EIO", err)
	}
	rec.setFault(nil)
	killed := filepath.Join(memoryDir(t), "killed")
	if err := os.CopyFS(killed, os.DirFS(rec.root)); err != nil {
		t.Fatal(err)
	}
	after, err := Open(t.Context(), killed, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if got, err := after.Blobs().Get(t.Context(), old.ID); err != nil || !bytes.Equal(got, old.Data) && !bytes.Equal(got, fresh) {
		t.Errorf("after the kill the blob has %d bytes, %v", len(got), err)
	}
}

// TestSweepOfCommitInDoubt leaves a commit in the log that no process can see,
// as a writer does that is killed between its last write and its entry in the
// shared index. While anybody has the store open the index stays as it is; the
// next one to open it alone reads the whole log, and finds the commit. A sweep
// between the two must not take the commit's object for an orphan.
func TestSweepOfCommitInDoubt(t *testing.T) {
	rec := newRecorder(t, memoryDir(t))
	db, err := Open(t.Context(), rec.root, rec.options())
	if err != nil {
		t.Fatal(err)
	}
	// The log gets its header, so that the next sync is that of a commit.
	if err := db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "first"}}}); err != nil {
		t.Fatal(err)
	}
	reader, err := Open(t.Context(), rec.root, &Options{ReadOnly: true, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Rows().Get(t.Context(), "k"); !errors.Is(err, kv.ErrNotFound) {
		t.Fatal(err)
	}
	rec.setFault(func(c change) error {
		if c.op == opSync && strings.HasSuffix(c.path, "-wal") {
			return syscall.EIO
		}
		return nil
	})
	large := blob.New(bytes.Repeat([]byte("x"), crashObjectSize))
	if err := db.Blobs().Put(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	batch := &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}, Refs: []blob.ID{large.ID}}
	if err := db.Rows().Commit(t.Context(), batch); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Commit = %v, want EIO", err)
	}
	rec.setFault(nil)
	if err := db.Close(); !errors.Is(err, blob.ErrReadOnly) {
		t.Errorf("Close = %v, want ErrReadOnly", err)
	}
	for _, open := range []string{"sweeping", "alone"} {
		after, err := Open(t.Context(), rec.root, rec.options())
		if err != nil {
			t.Fatal(err)
		}
		_, rowErr := after.Rows().Get(t.Context(), "k")
		_, blobErr := after.Blobs().Get(t.Context(), large.ID)
		visible := rowErr == nil && blobErr == nil
		absent := errors.Is(rowErr, kv.ErrNotFound) && errors.Is(blobErr, blob.ErrNotFound)
		if !visible && !absent {
			t.Errorf("%s: row: %v, blob: %v", open, rowErr, blobErr)
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
