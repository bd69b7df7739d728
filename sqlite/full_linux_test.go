package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// readsFull reads a closed store on a full disk and writes once there is room.
func readsFull(t *testing.T, dir string, opts Options, small, large blob.Blob, free func()) {
	t.Helper()
	opts.MustExist = true
	if _, err := Open(t.Context(), dir, &opts); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Open for writing = %v, want ErrFull", err)
	}
	opts.ReadIfFull = true
	for range 2 { // the first must not spoil it for the second
		db, err := Open(t.Context(), dir, &opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []blob.Blob{small, large} {
			got, err := db.Blobs().Get(t.Context(), want.ID)
			if err != nil || !bytes.Equal(got, want.Data) {
				t.Errorf("Get(%s) = %d bytes, %v", want.ID.Short(), len(got), err)
			}
		}
		if row, err := db.Rows().Get(t.Context(), "row/0"); err != nil || string(row.Value) != "closed" {
			t.Errorf("row = %q, %v", row.Value, err)
		}
		put := db.Blobs().Put(t.Context(), blob.New([]byte("new")))
		commit := db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k"}}})
		for _, err := range []error{put, commit} {
			if !db.ReadOnly() || !errors.Is(err, blob.ErrFull) || !errors.Is(err, blob.ErrReadOnly) {
				t.Errorf("a write = %v, want ErrReadOnly and ErrFull", err)
			}
		}
		closeNow(t, db)
	}
	free()
	db, err := Open(t.Context(), dir, &opts)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	commits(t, db, 1, "after")
	if report, err := db.Check(t.Context(), CheckOptions{}); err != nil || len(report.Damage) > 0 {
		t.Errorf("Check = %v, %v", report, err)
	}
}

// TestReadsWhileTheDiskIsFull has a disk that can make no file.
func TestReadsWhileTheDiskIsFull(t *testing.T) {
	dir, small, large := closedStore(t)
	rec := newRecorder(t, dir)
	rec.setFault(func(c change) error {
		if c.op == opCreate || c.op == opWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	readsFull(t, dir, *rec.options(), small, large, func() { rec.setFault(nil) })
}

// TestReadsOnAFullFileSystem needs a mount: files can be made and get no content, not even
// the index of the log.
func TestReadsOnAFullFileSystem(t *testing.T) {
	from, small, large := closedStore(t)
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount here (%v); TestReadsWhileTheDiskIsFull is about the same", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	dir, ballast := filepath.Join(mount, "store"), filepath.Join(mount, "ballast")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	readsFull(t, dir, Options{}, small, large, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}
