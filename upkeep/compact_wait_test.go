package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/sqlite"
)

// slowDisk takes its time to replace blobs.
type slowDisk struct {
	*sqlite.Blobs
	begun, release chan struct{}
}

func (d *slowDisk) Replace(ctx context.Context, blobs ...blob.Blob) error {
	close(d.begun)
	<-d.release
	return d.Blobs.Replace(ctx, blobs...)
}

// TestCompactDoesNotWaitForAnotherPass longer than it may. A verb that compacts for
// a moment had to wait until the pass that began in the background was through
// with everything.
func TestCompactDoesNotWaitForAnotherPass(t *testing.T) {
	engine, err := sqlite.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	disk := &slowDisk{Blobs: engine.Blobs(), begun: make(chan struct{}), release: make(chan struct{})}
	db, err := stet.New(t.Context(), stet.Backend{Blobs: disk, Rows: engine.Rows(), Inventory: disk, Rewriter: disk, Arrivals: disk, Close: engine.Close}, nil, &stet.Options{CompactManually: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one := blob.New(bytes.Repeat([]byte("no hurry\n"), 1000))
	if err := errors.Join(db.Blobs().Put(t.Context(), one), db.Blobs().Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	long := make(chan error)
	go func() { long <- db.Compact(t.Context(), nil) }()
	<-disk.begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := db.Compact(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("compacting beside another pass: %v, want the end of its time", err)
	}
	close(disk.release)
	if err := <-long; err != nil {
		t.Error(err)
	}
	wantStored(t, db, one)
}

// TestCompactThatIsStoppedSoonHasDoneSomething: else many short ones would begin with
// the same blobs and never get further.
func TestCompactThatIsStoppedSoonHasDoneSomething(t *testing.T) {
	next := content(4 << 10)
	db, err := stet.Open(t.Context(), t.TempDir(), &stet.Options{CompactManually: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 100 {
		if err := db.Blobs().Put(t.Context(), next()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Blobs().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var looked []int
	for range 4 {
		ctx, stop := context.WithCancel(t.Context())
		err := db.Compact(ctx, func(done int) {
			looked = append(looked, done)
			stop()
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("compacting until the first step is done: %v", err)
		}
	}
	if len(looked) != 4 || slices.Max(looked) > 25 {
		t.Errorf("four short passes looked at %v blobs, want a few each", looked)
	}
	row, err := db.Rows().Get(t.Context(), keyspace.Setting("settled"))
	if err != nil {
		t.Fatal(err)
	}
	if left, _, err := db.Engine().Blobs().Arrived(t.Context(), string(row.Value), 200); err != nil || len(left) > 100 {
		t.Errorf("%d blobs are left of 100 and 64 that were exchanged, %v", len(left), err)
	}
}
