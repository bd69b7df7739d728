package blobtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
)

// layer is the plainest layer, with some methods replaced by wrong ones.
type layer struct {
	blob.Store
	get func(context.Context, blob.ID) ([]byte, error)
	put func(context.Context, ...blob.Blob) error
}

func (l *layer) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if l.get != nil {
		return l.get(ctx, id)
	}
	return l.Store.Get(ctx, id)
}

func (l *layer) Put(ctx context.Context, blobs ...blob.Blob) error {
	if l.put != nil {
		return l.put(ctx, blobs...)
	}
	return l.Store.Put(ctx, blobs...)
}

func (l *layer) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	data, err := l.Get(ctx, id)
	return io.NopCloser(bytes.NewReader(data)), err
}

func (l *layer) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return err
	}
	return l.Put(ctx, blob.Blob{ID: id, Data: data})
}

func TestLayerThatAddsNothing(t *testing.T) {
	blobtest.RunLayer(t, func(_ *testing.T, inner blob.Store) blob.Store { return &layer{Store: inner} })
}

// TestLayerCasesFindBrokenLayers shows of each case that it can fail.
func TestLayerCasesFindBrokenLayers(t *testing.T) {
	broken := map[string]func(*layer){
		"a-failing-store-is-not-an-empty-one": func(l *layer) {
			l.get = func(ctx context.Context, id blob.ID) ([]byte, error) {
				data, err := l.Store.Get(ctx, id)
				if err != nil {
					err = blob.NotFound(id)
				}
				return data, err
			}
		},
		"a-wrong-read-does-not-stay": func(l *layer) { l.get = remembering(l.Store, false) },
		"absence-is-not-remembered":  func(l *layer) { l.get = remembering(l.Store, true) },
		"extension-of-what-another-put": func(l *layer) {
			var known sync.Map
			l.put = func(ctx context.Context, blobs ...blob.Blob) error {
				for _, b := range blobs {
					if _, ok := known.Load(b.Like); b.Keep > 0 && !ok {
						return blob.NotFound(b.Like)
					}
					known.Store(b.ID, true)
				}
				return l.Store.Put(ctx, blobs...)
			}
		},
		"no-write-is-lost-without-an-error": func(l *layer) {
			l.put = func(ctx context.Context, blobs ...blob.Blob) error {
				_ = l.Store.Put(ctx, blobs...)
				return ctx.Err()
			}
		},
		"a-store-that-is-down-is-reported": func(l *layer) { l.Store = calm{l.Store} },
		"what-was-swept-below-can-be-put-again": func(l *layer) {
			var known sync.Map
			l.put = func(ctx context.Context, blobs ...blob.Blob) error {
				for _, b := range blobs {
					if _, ok := known.Load(b.ID); ok {
						continue
					}
					if err := l.Store.Put(ctx, b); err != nil {
						return err
					}
					known.Store(b.ID, true)
				}
				return ctx.Err()
			}
		},
		"reads-beside-sweeps-below": func(l *layer) {
			l.get = func(ctx context.Context, id blob.ID) ([]byte, error) {
				has, err := l.Store.Has(ctx, id)
				if err != nil || !has[0] {
					return nil, blob.NotFound(id)
				}
				data, err := l.Store.Get(ctx, id)
				if errors.Is(err, blob.ErrNotFound) {
					err = blob.Corrupt(id, "it is not there any more")
				}
				return data, err
			}
		},
	}
	for _, c := range blobtest.LayerCases() {
		change := broken[c.Name]
		if change == nil {
			t.Errorf("no layer is known that breaks %s", c.Name)
			continue
		}
		err := c.Func(t.Context(), func(inner blob.Store) blob.Store {
			l := &layer{Store: inner}
			change(l)
			return l
		})
		if err == nil {
			t.Errorf("case %s passed on a layer that breaks it", c.Name)
		}
	}
}

// remembering keeps what it read, or that there was nothing.
func remembering(inner blob.Store, absence bool) func(context.Context, blob.ID) ([]byte, error) {
	var mu sync.Mutex
	results := map[blob.ID]func() ([]byte, error){}
	return func(ctx context.Context, id blob.ID) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if result := results[id]; result != nil {
			return result()
		}
		data, err := inner.Get(ctx, id)
		if err == nil || absence {
			results[id] = func() ([]byte, error) { return bytes.Clone(data), err }
		}
		return data, err
	}
}

// calm drops the errors of Flush.
type calm struct{ blob.Store }

func (c calm) Flush(ctx context.Context) error {
	_ = c.Store.Flush(ctx)
	return ctx.Err()
}
