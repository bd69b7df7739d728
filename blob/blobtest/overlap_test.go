package blobtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

// TestOverlapCasesFindBrokenStores gives each case about calls beside others the store
// that it is meant to find. The stores wait for the other call, so that it always comes
// between the two halves of the first.
func TestOverlapCasesFindBrokenStores(t *testing.T) {
	for name, broken := range map[string]blob.Store{
		"kept-bytes-come-with-their-base":       tornKept{newCrossed()},
		"reads-beside-exchanges":                tornGet{newCrossed()},
		"reads-beside-sweeps":                   sweptIsDamage{newCrossed()},
		"replace-beside-sweeps":                 leansBlindly{newCrossed(), new(sync.Map)},
		"calls-given-up-leave-whole-blobs":      keepsHalves{memblob.New()},
		"exchange-given-up-leaves-a-whole-blob": discardsNew{memblob.New()},
		"concurrent-puts-of-one-blob":           &cleansUp{Store: memblob.New()},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(blobtest.Cases(), func(c blobtest.Case) bool { return c.Name == name })
			if i < 0 {
				t.Fatal("there is no such case")
			}
			// This context never ends, so the stores can tell it from those that do.
			if err := blobtest.Cases()[i].Func(context.Background(), broken); err == nil {
				t.Error("the case passed")
			}
			if err := blobtest.Cases()[i].Func(context.Background(), memblob.New()); err != nil {
				t.Errorf("on a sound store: %v", err)
			}
		})
	}
}

// crossed is a store in which a Replace or Sweep can be waited for between two looks at
// a blob.
type crossed struct {
	*memblob.Store
	mu      sync.Mutex // guards waiting, and is held while blobs change
	waiting []*waiter
}

type waiter struct {
	id   blob.ID
	was  blob.Blob
	then chan look // has room for one
}

type look struct {
	blob blob.Blob
	err  error
}

func newCrossed() *crossed { return &crossed{Store: memblob.New()} }

// twice returns a blob as it is stored now, and after the next change of it.
func (c *crossed) twice(ctx context.Context, id blob.ID) (first blob.Blob, then look, err error) {
	c.mu.Lock()
	first, err = c.Store.Kept(ctx, id)
	w := &waiter{id: id, was: first, then: make(chan look, 1)}
	if err == nil {
		c.waiting = append(c.waiting, w)
	}
	c.mu.Unlock()
	if err != nil {
		return first, look{}, err
	}
	return first, <-w.then, nil
}

// change runs fn and wakes those whose blob it changed.
func (c *crossed) change(fn func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := fn()
	c.waiting = slices.DeleteFunc(c.waiting, func(w *waiter) bool {
		now, err := c.Store.Kept(context.Background(), w.id)
		if err == nil && now.Base == w.was.Base && bytes.Equal(now.Data, w.was.Data) {
			return false
		}
		w.then <- look{now, err}
		return true
	})
	return err
}

func (c *crossed) Replace(ctx context.Context, blobs ...blob.Blob) error {
	return c.change(func() error { return c.Store.Replace(ctx, blobs...) })
}

func (c *crossed) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (r blob.SweepResult, err error) {
	err = c.change(func() error {
		r, err = c.Store.Sweep(ctx, generation, opts)
		return err
	})
	return r, err
}

// tornKept reads the base of a blob and its bytes one after the other.
type tornKept struct{ *crossed }

func (s tornKept) Kept(ctx context.Context, id blob.ID) (blob.Blob, error) {
	first, then, err := s.twice(ctx, id)
	if err != nil {
		return blob.Blob{}, err
	}
	return blob.Blob{ID: id, Base: first.Base, Data: then.blob.Data}, then.err
}

// tornGet takes the size of a blob from one look and its bytes from the next.
type tornGet struct{ *crossed }

func (s tornGet) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	first, then, err := s.twice(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(first.Data) != len(then.blob.Data) {
		return nil, blob.Corrupt(id, "%d bytes, want %d", len(then.blob.Data), len(first.Data))
	}
	return then.blob.Data, then.err
}

// sweptIsDamage takes a blob that is removed between two looks for a damaged one.
type sweptIsDamage struct{ *crossed }

func (s sweptIsDamage) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	_, then, err := s.twice(ctx, id)
	if err != nil {
		return nil, err
	}
	if then.err != nil {
		return nil, blob.Corrupt(id, "it is not there any more")
	}
	return then.blob.Data, nil
}

// leansBlindly looks for a base before it replaces a blob, and not again. memblob would
// not have it, so the bases that are gone are only listed.
type leansBlindly struct {
	*crossed
	gone *sync.Map // from the id of a blob to its base
}

func (s leansBlindly) Replace(ctx context.Context, blobs ...blob.Blob) error {
	for _, b := range blobs {
		if b.Base.IsZero() {
			continue
		}
		if _, then, err := s.twice(ctx, b.Base); err == nil && then.err != nil {
			s.gone.Store(b.ID, b.Base)
		}
	}
	return nil
}

func (s leansBlindly) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	return s.Store.List(ctx, after, func(i blob.Info) error {
		if base, ok := s.gone.Load(i.ID); ok {
			i.Base = base.(blob.ID)
		}
		return fn(i)
	})
}

// keepsHalves stores what it has of a source when its context ends.
type keepsHalves struct{ *memblob.Store }

func (s keepsHalves) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	data, err := io.ReadAll(r)
	if err == nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), s.Store.Put(context.Background(), blob.Blob{ID: id, Data: data[:len(data)/2]}))
	}
	return errors.Join(err, s.Store.PutFrom(ctx, id, bytes.NewReader(data), size))
}

// discardsNew removes the new bytes when the context of an exchange ends, although the
// exchange has taken place.
type discardsNew struct{ *memblob.Store }

func (s discardsNew) Replace(ctx context.Context, blobs ...blob.Blob) error {
	if ctx.Done() == nil {
		return s.Store.Replace(ctx, blobs...)
	}
	<-ctx.Done()
	blobs = slices.Clone(blobs)
	for i := range blobs {
		blobs[i].Data = nil
	}
	return errors.Join(ctx.Err(), s.Store.Replace(context.Background(), blobs...))
}

// cleansUp takes a blob that is stored already for its own copy that nobody needs, and
// removes it with the next Flush.
type cleansUp struct {
	*memblob.Store
	mu     sync.Mutex // guards unused
	unused map[blob.ID]bool
}

func (s *cleansUp) Put(ctx context.Context, blobs ...blob.Blob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blobs {
		has, err := s.Has(ctx, b.ID)
		if err != nil {
			return err
		}
		if has[0] {
			if s.unused == nil {
				s.unused = make(map[blob.ID]bool)
			}
			s.unused[b.ID] = true
		}
	}
	return s.Store.Put(ctx, blobs...)
}

func (s *cleansUp) Flush(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	generation, err := s.Begin(ctx)
	if err == nil {
		_, err = s.Sweep(ctx, generation, blob.SweepOptions{Live: func(id blob.ID) bool { return !s.unused[id] }})
	}
	return err
}
