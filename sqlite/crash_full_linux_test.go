package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// smallDisk returns options for a store on a disk with room for about 3 MiB, its
// directory, and a function that makes more room.
func smallDisk(t *testing.T) (dir string, opts *Options, free func()) {
	t.Helper()
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=4m"); err != nil {
		t.Logf("no small file system (%v), its limit is simulated", err)
		return simulatedDisk(t)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	free = func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(mount, "store"), &Options{ObjectSize: 64 << 10}, free
}

func simulatedDisk(t *testing.T) (dir string, opts *Options, free func()) {
	rec := newRecorder(t, memoryDir(t))
	opts = rec.options()
	opts.ObjectSize = 64 << 10
	room := 3 << 20
	rec.setFault(func(c change) error {
		if room -= len(c.data); room < 0 {
			room += len(c.data)
			return syscall.ENOSPC
		}
		return nil
	})
	return rec.root, opts, func() { rec.setFault(nil) }
}

func TestFullDisk(t *testing.T) {
	dir, opts, free := smallDisk(t)
	db, err := Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { db.Close() }()
	save := func(n int) error {
		size := 16 << 10
		if n%4 == 0 {
			size = 80 << 10
		}
		content := blob.New(bytes.Repeat(fmt.Appendf(nil, "%07d ", n), size/8))
		if err := db.Blobs().Put(t.Context(), content); err != nil {
			return err
		}
		return db.Rows().Commit(t.Context(), &kv.Batch{
			Set:  []kv.Set{{Key: fmt.Sprintf("row/%05d", n), Value: []byte(content.ID.String())}},
			Refs: []blob.ID{content.ID},
		})
	}
	saved, refused := 0, 0
	for n := 1; refused < 10; n++ {
		if n > 1000 {
			t.Fatal("the disk does not get full")
		}
		switch err := save(n); {
		case err == nil && refused == 0:
			saved = n
		case err != nil && !errors.Is(err, blob.ErrFull):
			t.Fatalf("save %d on a full disk: %v, want ErrFull", n, err)
		default:
			refused++
		}
	}
	check := func(when string) {
		t.Helper()
		for n := 1; n <= saved; n++ {
			row, err := db.Rows().Get(t.Context(), fmt.Sprintf("row/%05d", n))
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			id, err := blob.ParseID(string(row.Value))
			if err == nil {
				_, err = blob.Checked(db.Blobs()).Get(t.Context(), id)
			}
			if err != nil {
				t.Fatalf("%s: row %d: %v", when, n, err)
			}
		}
	}
	check("while the disk is full")
	free()
	if err := save(2001); err != nil {
		t.Errorf("save after room was made: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if db, err = Open(t.Context(), dir, opts); err != nil {
		t.Fatal(err)
	}
	check("after opening again")
	report, err := db.Check(t.Context(), CheckOptions{})
	if err != nil || len(report.Damage) > 0 {
		t.Errorf("check: %v, %v", report.Damage, err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
