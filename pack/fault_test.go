package pack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/pack"
)

var errFault = errors.New("injected fault")

// faults makes one call fail, or all from that one on, as if the process had
// died. A call that changes something fails before or after it did.
type faults struct {
	mu     sync.Mutex
	calls  int
	at     int // the number of the call that fails; negative for none
	sticky bool
	after  bool
}

func (f *faults) next() (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.calls
	f.calls++
	if f.at < 0 || n < f.at || n > f.at && !f.sticky {
		return nil, nil
	}
	if f.after && n == f.at {
		return nil, errFault
	}
	return errFault, nil
}

// do runs a call with the fault that is due.
func (f *faults) do(call func() error) error {
	before, after := f.next()
	if before != nil {
		return before
	}
	return errors.Join(call(), after)
}

type faultyRows struct {
	*memkv.Store
	f *faults
}

func (r faultyRows) Get(ctx context.Context, key string) (row kv.Row, err error) {
	err = r.f.do(func() error { row, err = r.Store.Get(ctx, key); return err })
	return row, err
}

func (r faultyRows) Commit(ctx context.Context, b *kv.Batch) error {
	return r.f.do(func() error { return r.Store.Commit(ctx, b) })
}

func (r faultyRows) Scan(ctx context.Context, in kv.Range, o kv.ScanOptions) iter.Seq2[kv.Row, error] {
	if err := r.f.do(func() error { return nil }); err != nil {
		return func(yield func(kv.Row, error) bool) { yield(kv.Row{}, err) }
	}
	return r.Store.Scan(ctx, in, o)
}

type faultyBlobs struct {
	*memblob.Store
	f *faults
}

func (b faultyBlobs) Get(ctx context.Context, id blob.ID) (data []byte, err error) {
	err = b.f.do(func() error { data, err = b.Store.Get(ctx, id); return err })
	return data, err
}

func (b faultyBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	return b.f.do(func() error { return b.Store.Put(ctx, blobs...) })
}

func (b faultyBlobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	return b.f.do(func() error { return b.Store.List(ctx, after, fn) })
}

type faultyObjects struct {
	*memblob.Objects
	f *faults
}

func (o faultyObjects) PutObject(ctx context.Context, key string, r io.Reader, size int64) error {
	return o.f.do(func() error { return o.Objects.PutObject(ctx, key, r, size) })
}

func (o faultyObjects) OpenObject(ctx context.Context, key string, offset, length int64) (r io.ReadCloser, err error) {
	err = o.f.do(func() error { r, err = o.Objects.OpenObject(ctx, key, offset, length); return err })
	return r, err
}

func (o faultyObjects) RemoveObjects(ctx context.Context, keys ...string) error {
	return o.f.do(func() error { return o.Objects.RemoveObjects(ctx, keys...) })
}

// faultyNode is a process over the world's drivers that meets faults.
func (w *world) faultyNode(f *faults) *pack.Store {
	blobs := faultyBlobs{w.blobs, f}
	return pack.New(pack.Driver{Blobs: blobs, Rows: faultyRows{w.rows, f}, Objects: faultyObjects{w.objects, f}, Lister: blobs}, &pack.Options{ObjectBytes: 512})
}

// A fault at any call, once or permanent, loses nothing: the next caller sees
// the conversation as it was before or after, and can go on.
func TestFaultsAtEveryCall(t *testing.T) {
	const saves = 6
	last := blob.New([]byte("c1 save 7"))
	save := &kv.Batch{
		Expect: []kv.Expect{{Key: keyspace.Save("c1", saves+1)}},
		Set:    []kv.Set{{Key: keyspace.Save("c1", saves+1), Value: []byte("save 7")}, {Key: keyspace.Head("c1"), Value: []byte(last.ID.String())}},
		Refs:   []blob.ID{last.ID},
	}
	for name, op := range map[string]struct {
		archived bool
		run      func(w *world, s *pack.Store, ids []blob.ID) error
	}{
		"archive": {false, func(w *world, s *pack.Store, ids []blob.ID) error {
			_, err := s.Archive(w.ctx, "c1", w.gather("c1", ids))
			return err
		}},
		"unarchive": {true, func(w *world, s *pack.Store, _ []blob.ID) error { return s.Unarchive(w.ctx, "c1") }},
		"save": {true, func(w *world, s *pack.Store, _ []blob.ID) error {
			if err := s.Blobs().Put(w.ctx, last); err != nil {
				return err
			}
			return s.Rows().Commit(w.ctx, save)
		}},
		"read": {true, func(w *world, s *pack.Store, ids []blob.ID) error {
			for _, err := range s.Rows().Scan(w.ctx, keyspace.Saves("c1"), kv.ScanOptions{}) {
				if err != nil {
					return err
				}
			}
			_, err := s.Blobs().Get(w.ctx, ids[0])
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for mode := range 4 {
				for at := 0; ; at++ {
					f := &faults{at: at, sticky: mode&1 > 0, after: mode&2 > 0}
					w := newWorld(t, &pack.Options{ObjectBytes: 512})
					ids := w.fill("c1", saves)
					want := w.dump(w.packs.Rows(), "c1")
					if op.archived {
						w.archive("c1", ids)
					}
					err := op.run(w, w.faultyNode(f), ids)
					if f.calls <= at {
						if err != nil {
							t.Fatalf("without a fault: %v", err)
						}
						if at < 4 {
							t.Errorf("it makes %d calls only", at)
						}
						break // the fault did not happen: all calls were tried
					}
					w.survived(want, ids, last, err == nil && name == "save")
					if errors.Is(err, kv.ErrConflict) && !f.after {
						t.Errorf("call %d, mode %d: %v", at, mode, err)
					}
					w.goOn(ids)
					if t.Failed() {
						t.Fatalf("call %d, mode %d ended with %v", at, mode, err)
					}
				}
			}
		})
	}
}

// survived looks at a conversation after a fault. A save that was acknowledged
// must have happened, others may.
func (w *world) survived(want map[string]kv.Row, ids []blob.ID, last blob.Blob, acknowledged bool) {
	w.Helper()
	w.collect()
	node := w.node()
	got := w.dump(node.Rows(), "c1")
	key := keyspace.Save("c1", uint64(len(ids)+1))
	_, saved := got[key]
	if saved {
		delete(got, key)
		got[keyspace.Head("c1")] = want[keyspace.Head("c1")]
		ids = append(slices.Clone(ids), last.ID)
	}
	if acknowledged && !saved {
		w.Error("an acknowledged save is lost")
	}
	sameRows(w.T, got, want, false)
	for i, id := range ids {
		data, err := node.Blobs().Get(w.ctx, id)
		if want := fmt.Sprintf("c1 save %d", i+1); err != nil || string(data) != want {
			w.Errorf("blob %d: %q, %v", i, data, err)
		}
	}
}

// goOn archives, unarchives and cleans up after a fault.
func (w *world) goOn(ids []blob.ID) {
	w.Helper()
	w.packs = w.node()
	_, err := w.packs.Archive(w.ctx, "c1", w.gather("c1", ids))
	if err != nil && !errors.Is(err, pack.ErrArchived) {
		w.Errorf("archive after a fault: %v", err)
	}
	if err := w.packs.Verify(w.ctx, "c1", true); err != nil {
		w.Errorf("verify after a fault: %v", err)
	}
	if err := w.packs.Unarchive(w.ctx, "c1"); err != nil {
		w.Errorf("unarchive after a fault: %v", err)
	}
	for row, err := range w.rows.Scan(w.ctx, keyspace.AllPacked(), kv.ScanOptions{KeysOnly: true}) {
		w.Errorf("row %q is left, %v", row.Key, err)
	}
	later := pack.New(w.driver(), &pack.Options{Now: func() time.Time { return time.Now().Add(48 * time.Hour) }})
	if _, err := later.Sweep(w.ctx, 0); err != nil {
		w.Error(err)
	}
	if err := w.objects.ListObjects(w.ctx, "", "", func(o blob.ObjectInfo) error { return fmt.Errorf("%s is left", o.Key) }); err != nil {
		w.Error(err)
	}
}
