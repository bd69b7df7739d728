package sqlite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
)

// sweepAll is a collector of another process for which nothing is live.
func sweepAll(t *testing.T, other *Blobs) {
	t.Helper()
	number, err := other.Begin(t.Context())
	if err == nil {
		_, err = other.Sweep(t.Context(), number, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flushed holds a store to what Flush said: nil means that a blob can be read.
func flushed(t *testing.T, b *Blobs, one blob.Blob) {
	t.Helper()
	err := b.Flush(t.Context())
	if errors.Is(err, blob.ErrNotFound) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if data, err := b.Get(t.Context(), one.ID); err != nil || !bytes.Equal(data, one.Data) {
		t.Errorf("Flush returned nil, and then Get %d bytes, %v", len(data), err)
	}
}

// TestALargeBlobThatGoesBetweenPutAndFlush is stored already when it is put, and
// swept before the writer gets to it.
func TestALargeBlobThatGoesBetweenPutAndFlush(t *testing.T) {
	db := openTest(t, nil)
	other := openAgain(t, db).Blobs()
	large := blob.New(make([]byte, 200<<10))
	if err := errors.Join(db.Blobs().Put(t.Context(), large), db.Blobs().Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	db.writer.turn.Lock()
	err := db.Blobs().Put(t.Context(), large)
	sweepAll(t, other)
	db.writer.turn.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	flushed(t, db.Blobs(), large)
}

// TestAnObjectFileThatWaitsForItsRow waits longer than a sweep elsewhere lets files
// be that no row names, as those of a process do whose disk was full.
func TestAnObjectFileThatWaitsForItsRow(t *testing.T) {
	db := openTest(t, nil)
	other := openAgain(t, db).Blobs()
	large := blob.New(make([]byte, 200<<10))
	db.writer.turn.Lock()
	err := db.Blobs().Put(t.Context(), large)
	if err == nil {
		old := time.Now().Add(-2 * orphanAge)
		err = db.objects.walk(func(_ fs.FileInfo, id blob.ID, suffix string) error {
			return os.Chtimes(db.objects.path(id, suffix), old, old)
		})
	}
	sweepAll(t, other)
	db.writer.turn.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	flushed(t, db.Blobs(), large)
}

// TestFlushReportsLostBlobs has others use the store in between, who do not
// ask for durability, and one who did and has given up. A caller that puts it again gets
// no error.
func TestFlushReportsLostBlobs(t *testing.T) {
	t.Run("lost", func(t *testing.T) { loseBase(t, false) })
	t.Run("put again", func(t *testing.T) { loseBase(t, true) })
}

func loseBase(t *testing.T, again bool) {
	ctx := t.Context()
	db := openTest(t, nil)
	other := openAgain(t, db).Blobs()
	base, kept := blob.New([]byte("base")), blob.New([]byte("kept"))
	if err := errors.Join(db.Blobs().Put(ctx, base), db.Blobs().Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	db.writer.turn.Lock()
	leaning := blob.New([]byte("leaning"))
	leaning.Base = base.ID
	err := db.Blobs().Put(ctx, leaning)
	sweepAll(t, other)
	db.writer.turn.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().Put(ctx, kept); err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().Replace(ctx, kept); err != nil {
		t.Errorf("Replace: %v", err)
	}
	if err := db.Blobs().List(ctx, blob.ID{}, func(blob.Info) error { return nil }); err != nil {
		t.Errorf("List: %v", err)
	}
	if err := db.writer.do(&request{ctx: ctx}); err != nil { // that of a Flush whose caller has given up
		t.Errorf("a request: %v", err)
	}
	if again {
		leaning.Base = blob.ID{}
		if err := db.Blobs().Put(ctx, leaning); err != nil {
			t.Fatal(err)
		}
		if err := db.Blobs().Flush(ctx); err != nil {
			t.Errorf("Flush after another Put = %v", err)
		}
		return
	}
	if err := db.Blobs().Flush(ctx); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Flush = %v, want that the base is gone", err)
	}
}
