package purge_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/purge"
	"github.com/stet-dev/stet/sqlite"
)

var errDead = errors.New("the process is dead")

// fuse lets some calls through that change the store, and none after that.
type fuse struct{ left int }

func (f *fuse) burn() error {
	if f.left <= 0 {
		return errDead
	}
	f.left--
	return nil
}

type dyingBlobs struct {
	*sqlite.Blobs
	*fuse
}

func (d dyingBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := d.burn(); err != nil {
		return err
	}
	return d.Blobs.Put(ctx, blobs...)
}

func (d dyingBlobs) Sweep(ctx context.Context, n uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	if err := d.burn(); err != nil {
		return blob.SweepResult{}, err
	}
	return d.Blobs.Sweep(ctx, n, opts)
}

func (d dyingBlobs) Replace(ctx context.Context, blobs ...blob.Blob) error {
	if err := d.burn(); err != nil {
		return err
	}
	return d.Blobs.Replace(ctx, blobs...)
}

type dyingRows struct {
	kv.Store
	*fuse
}

func (d dyingRows) Commit(ctx context.Context, b *kv.Batch) error {
	if err := d.burn(); err != nil {
		return err
	}
	return d.Store.Commit(ctx, b)
}

// TestKilledAtEveryChange ends a purge before each call that changes the store, before every
// fifth in quick runs. The store is whole, and another purge finishes the work.
func TestKilledAtEveryChange(t *testing.T) {
	made := newWorld(t, false)
	db := made.open()
	made.history(db)
	_, err := db.Archive(t.Context(), "idle")
	must(t, err)
	must(t, db.Compact(t.Context(), nil))
	must(t, db.Close())
	target := purge.Target{Secrets: [][]byte{[]byte(secret)}}
	for n := 0; ; n += testenv.Sizes(5, 1, 1) {
		w := &world{t: t, store: filepath.Join(t.TempDir(), "store"), project: made.project, opts: &stet.Options{}}
		must(t, os.CopyFS(w.store, os.DirFS(made.store)))
		finished := w.dying(n, target)
		db := w.open()
		w.sound(db)
		for _, id := range []string{"shop", "idle", "clean"} {
			text(t, db, id)
		}
		_, res := w.purge(db, target)
		remains(t, res)
		w.sound(db)
		must(t, db.Close())
		if left := w.grep(secret); len(left) > 0 {
			t.Errorf("after a crash at change %d the bytes are still in %q", n, left)
		}
		if t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
		if finished {
			if n < 8 {
				t.Fatalf("a purge made only %d changes", n)
			}
			return
		}
	}
}

// dying purges with a store that fails after some changes, and reports whether it came to
// an end.
func (w *world) dying(changes int, target purge.Target) (finished bool) {
	w.t.Helper()
	ctx := w.t.Context()
	engine, err := sqlite.Open(ctx, w.store, nil)
	must(w.t, err)
	f := &fuse{left: 1 << 30}
	blobs := dyingBlobs{engine.Blobs(), f}
	bucket := pack.NewDir(w.store)
	db, err := stet.New(ctx, stet.Backend{
		Blobs: blobs, Rows: dyingRows{engine.Rows(), f}, Inventory: blobs, Rewriter: blobs, Arrivals: blobs,
		Objects: bucket, Unfinished: bucket.RemoveUnfinished, Shrink: engine.Shrink, Close: engine.Close,
	}, nil, &stet.Options{CompactManually: true})
	must(w.t, err)
	defer db.Close()
	p := w.purger(db)
	plan, err := p.Find(ctx, target)
	must(w.t, err)
	f.left = changes
	_, err = p.Remove(ctx, plan)
	if err != nil && !errors.Is(err, errDead) {
		w.t.Fatal(err)
	}
	return err == nil
}
