package pack_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/pack"
)

// TestSweepRemovesWhatKilledArchiveersBegan has two files that never got their name.
func TestSweepRemovesWhatKilledArchiveersBegan(t *testing.T) {
	dir, blobs := t.TempDir(), memblob.New()
	bucket := pack.NewDir(dir)
	s := pack.New(pack.Driver{Blobs: blobs, Rows: memkv.New(blobs), Objects: bucket, Lister: blobs, Unfinished: bucket.RemoveUnfinished}, nil)
	if res, err := s.Sweep(t.Context(), 0); err != nil || res.Removed != 0 {
		t.Fatalf("Sweep without packs = %+v, %v", res, err)
	}
	old, young := filepath.Join(dir, "packs", "ab", ".tmp-1"), filepath.Join(dir, "packs", "cd", ".tmp-2")
	for _, path := range []string{old, young} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("half an object"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	res, err := s.Sweep(t.Context(), 0)
	if err != nil || res.Removed != 1 || res.RemovedBytes != 14 {
		t.Errorf("Sweep = %+v, %v; want one of 14 bytes removed", res, err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old file: %v, want it gone", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the young file, which somebody may be writing: %v", err)
	}
}
