package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
)

// LayerCase is one promise of layers about the store below them.
type LayerCase struct {
	// Name is a few words joined by hyphens.
	Name string
	// Func returns an error if the layer breaks the promise. It calls open for each
	// layer that it puts on top of a store.
	Func func(ctx context.Context, open func(inner blob.Store) blob.Store) error
}

// LayerCases returns the table that RunLayer runs.
func LayerCases() []LayerCase {
	return []LayerCase{
		{"a-failing-store-is-not-an-empty-one", failingIsNotEmpty},
		{"a-wrong-read-does-not-stay", wrongReadPasses},
		{"absence-is-not-remembered", absenceForgotten},
		{"extension-of-what-another-put", extendsOthers},
		{"no-write-is-lost-without-an-error", noWriteLost},
		{"a-store-that-is-down-is-reported", downIsReported},
		{"what-was-swept-below-can-be-put-again", sweptBelow},
		{"reads-beside-sweeps-below", readsBesideSweepsBelow},
	}
}

// RunLayer checks the promises of a layer about the store below: the layer neither hides
// nor remembers faults of that store, and expects others to change it. open returns a
// layer on top of inner. Several layers on one store stand for several processes.
func RunLayer(t *testing.T, open func(t *testing.T, inner blob.Store) blob.Store) {
	for _, c := range LayerCases() {
		t.Run(c.Name, func(t *testing.T) {
			err := c.Func(t.Context(), func(inner blob.Store) blob.Store { return open(t, inner) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// layerBlobs are the forms in which layers keep blobs: small, similar to another one,
// an extension, large.
type layerBlobs struct{ base, edited, longer, large blob.Blob }

func newLayerBlobs(salt string) layerBlobs {
	text := bytes.Repeat([]byte("some text of "+salt+", which repeats itself. "), 100)
	base := blob.New(text)
	edited := blob.New(append(bytes.Clone(text), "An edit."...))
	edited.Like = base.ID
	whole := append(bytes.Clone(text), "An extension."...)
	longer := blob.Blob{ID: blob.Sum(whole), Like: base.ID, Keep: int64(len(text)), Data: []byte("An extension.")}
	large := make([]byte, 300<<10)
	state := blob.Sum(text)
	for i := range large { // does not compress
		if i%32 == 0 {
			state = blob.Sum(state[:])
		}
		large[i] = state[i%32]
	}
	return layerBlobs{base, edited, longer, blob.New(large)}
}

// whole returns all blobs with their whole content.
func (l layerBlobs) whole() []blob.Blob {
	longer := blob.New(slices.Concat(l.base.Data[:l.longer.Keep], l.longer.Data))
	return []blob.Blob{l.base, l.edited, longer, l.large}
}

// put stores all of them, each in its own call, and returns which calls succeeded.
func (l layerBlobs) put(ctx context.Context, s blob.Store) (stored []blob.Blob, err error) {
	for i, whole := range l.whole() {
		var one error
		if i == 3 {
			one = blob.PutFrom(ctx, s, whole.ID, bytes.NewReader(whole.Data), int64(len(whole.Data)))
		} else {
			one = s.Put(ctx, []blob.Blob{l.base, l.edited, l.longer}[i])
		}
		if one == nil {
			stored = append(stored, whole)
		}
		err = errors.Join(err, one)
	}
	return stored, err
}

// putAll puts and flushes all of them and wants no error.
func (l layerBlobs) putAll(ctx context.Context, s blob.Store) error {
	if _, err := l.put(ctx, s); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if err := s.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// wantAll reads blobs in both ways.
func wantAll(ctx context.Context, s blob.Store, blobs []blob.Blob) error {
	for _, b := range blobs {
		for name, read := range readers(ctx, s, b.ID) {
			if got, err := read(); err != nil || !bytes.Equal(got, b.Data) {
				return fmt.Errorf("%s of a blob of %d bytes: got %d bytes, %w", name, len(b.Data), len(got), orWrong(err))
			}
		}
	}
	return nil
}

func orWrong(err error) error {
	if err == nil {
		return errors.New("which are others")
	}
	return err
}

func readers(ctx context.Context, s blob.Store, id blob.ID) map[string]func() ([]byte, error) {
	return map[string]func() ([]byte, error){
		"get": func() ([]byte, error) { return s.Get(ctx, id) },
		"open": func() ([]byte, error) {
			r, err := blob.Open(ctx, s, id)
			if err != nil {
				return nil, err
			}
			data, err := io.ReadAll(r)
			return data, errors.Join(err, r.Close())
		},
	}
}

// blames reports whether an error says something about the blob itself.
func blames(err error) bool {
	return errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrMismatch)
}

// failingIsNotEmpty reads while the store below fails. The layer must fail too, or have
// the content; it must not report the blob as absent.
func failingIsNotEmpty(ctx context.Context, open func(blob.Store) blob.Store) error {
	inner, all := memblob.New(), newLayerBlobs("failing reads")
	if err := all.putAll(ctx, open(inner)); err != nil {
		return err
	}
	below := NewFaulty(inner)
	layer := open(below)
	below.FailWhen(func(c Call) bool { return c.Op == OpGet || c.Op == OpHas || c.Op == OpOpen }, nil)
	for _, b := range all.whole() {
		for name, read := range readers(ctx, layer, b.ID) {
			got, err := read()
			if blames(err) || err == nil && !bytes.Equal(got, b.Data) {
				return fmt.Errorf("%s while the store below fails: got %d bytes, %v", name, len(got), err)
			}
		}
		if has, err := layer.Has(ctx, b.ID); err == nil && !has[0] {
			return errors.New("has while the store below fails: got false")
		}
	}
	more := all.longer
	if err := layer.Put(ctx, more); blames(err) {
		return fmt.Errorf("put of an extension while the store below fails: %w", err)
	}
	below.Heal()
	return wantAll(ctx, layer, all.whole())
}

// wrongReadPasses makes each read of the store below go wrong once.
func wrongReadPasses(ctx context.Context, open func(blob.Store) blob.Store) error {
	for _, fault := range []Fault{{Corrupt: true}, {Truncate: 1}, {Truncate: 1 << 20}} {
		inner, all := memblob.New(), newLayerBlobs("wrong reads")
		if err := all.putAll(ctx, open(inner)); err != nil {
			return err
		}
		below := NewFaulty(inner)
		layer := blob.Checked(open(below))
		below.On(func(Call) *Fault { return &fault })
		for _, b := range all.whole() {
			for name, read := range readers(ctx, layer, b.ID) {
				if got, err := read(); err == nil && !bytes.Equal(got, b.Data) {
					return fmt.Errorf("%s over a store that reads wrongly: got %d other bytes", name, len(got))
				}
			}
		}
		below.Heal()
		if err := wantAll(ctx, layer, all.whole()); err != nil {
			return fmt.Errorf("after a wrong read (%+v): %w", fault, err)
		}
	}
	return nil
}

// absenceForgotten looks for blobs before another process stores them.
func absenceForgotten(ctx context.Context, open func(blob.Store) blob.Store) error {
	inner, all := memblob.New(), newLayerBlobs("absence")
	layer := open(inner)
	for _, b := range all.whole() {
		for name, read := range readers(ctx, layer, b.ID) {
			if _, err := read(); !errors.Is(err, blob.ErrNotFound) {
				return fmt.Errorf("%s of an absent blob: got %v, want ErrNotFound", name, err)
			}
		}
	}
	if err := all.putAll(ctx, open(inner)); err != nil {
		return err
	}
	return wantAll(ctx, layer, all.whole())
}

// extendsOthers extends a blob that another process put.
func extendsOthers(ctx context.Context, open func(blob.Store) blob.Store) error {
	inner, all := memblob.New(), newLayerBlobs("blobs of others")
	other := open(inner)
	if err := errors.Join(other.Put(ctx, all.base), other.Flush(ctx)); err != nil {
		return err
	}
	layer := open(inner)
	if err := errors.Join(layer.Put(ctx, all.longer, all.edited), layer.Flush(ctx)); err != nil {
		return fmt.Errorf("put of an extension and an edit of what another process put: %w", err)
	}
	whole := all.whole()[:3]
	return errors.Join(wantAll(ctx, layer, whole), wantAll(ctx, open(inner), whole))
}

// noWriteLost makes each call to the store below fail, before or after its work. Blobs
// that Put and Flush acknowledged are readable by everyone. A blob whose Put failed can
// be put again.
func noWriteLost(ctx context.Context, open func(blob.Store) blob.Store) error {
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			inner, all := memblob.New(), newLayerBlobs(fmt.Sprint("lost writes ", n))
			below := NewFaulty(inner)
			layer := open(below)
			var hit atomic.Bool
			below.On(func(c Call) *Fault {
				if c.Nth != n {
					return nil
				}
				hit.Store(true)
				return &Fault{Err: ErrInjected, Late: late}
			})
			stored, _ := all.put(ctx, layer)
			flushed := layer.Flush(ctx)
			below.Heal()
			if flushed == nil {
				if err := wantAll(ctx, open(inner), stored); err != nil {
					return fmt.Errorf("call %d below failed (late: %t), put and flush did not: %w", n, late, err)
				}
			}
			if err := all.putAll(ctx, layer); err != nil {
				return fmt.Errorf("again, after call %d below failed (late: %t): %w", n, late, err)
			}
			if err := errors.Join(wantAll(ctx, layer, all.whole()), wantAll(ctx, open(inner), all.whole())); err != nil {
				return fmt.Errorf("put again after call %d below failed (late: %t): %w", n, late, err)
			}
			if !hit.Load() {
				break // all calls have failed once
			}
		}
	}
	return nil
}

// downIsReported puts many blobs while every call below fails. No call blocks forever, and
// nothing is acknowledged.
func downIsReported(ctx context.Context, open func(blob.Store) blob.Store) error {
	inner := memblob.New()
	below := NewFaulty(inner)
	layer := open(below)
	below.FailWhen(func(Call) bool { return true }, nil)
	var all []layerBlobs
	accepted := 0
	for i := range 20 {
		all = append(all, newLayerBlobs(fmt.Sprint("down ", i)))
		stored, _ := all[i].put(ctx, layer)
		accepted += len(stored)
	}
	if err := layer.Flush(ctx); err == nil {
		return fmt.Errorf("flush over a store that is down, after %d accepted blobs: got no error", accepted)
	}
	below.Heal()
	for _, l := range all {
		if err := l.putAll(ctx, layer); err != nil {
			return fmt.Errorf("when the store below is up again: %w", err)
		}
		if err := wantAll(ctx, open(inner), l.whole()); err != nil {
			return fmt.Errorf("when the store below is up again: %w", err)
		}
	}
	return nil
}

// sweepAll removes everything from a store, like a collector that found nothing live.
func sweepAll(ctx context.Context, inner *memblob.Store) error {
	generation, err := inner.Begin(ctx)
	if err == nil {
		_, err = inner.Sweep(ctx, generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
	}
	return err
}

// sweptBelow removes blobs below a layer that has put and read them. The layer may still
// know their content, but must not rely on it when it stores others.
func sweptBelow(ctx context.Context, open func(blob.Store) blob.Store) error {
	inner, all := memblob.New(), newLayerBlobs("swept")
	layer := open(inner)
	if err := errors.Join(all.putAll(ctx, layer), wantAll(ctx, layer, all.whole()), sweepAll(ctx, inner)); err != nil {
		return err
	}
	if err := errors.Join(layer.Put(ctx, all.edited), layer.Flush(ctx)); err != nil {
		return fmt.Errorf("put of a blob that is like a swept one: %w", err)
	}
	if err := wantAll(ctx, open(inner), []blob.Blob{all.edited}); err != nil {
		return fmt.Errorf("a blob that is like a swept one: %w", err)
	}
	if err := errors.Join(sweepAll(ctx, inner), all.putAll(ctx, layer)); err != nil {
		return fmt.Errorf("put of swept blobs: %w", err)
	}
	return wantAll(ctx, open(inner), all.whole())
}

// readsBesideSweepsBelow lets a collector remove everything before each call that a read
// makes below. The reader gets the content or ErrNotFound, never damage.
func readsBesideSweepsBelow(ctx context.Context, open func(blob.Store) blob.Store) error {
	all := newLayerBlobs("reads beside sweeps")
	for _, b := range all.whole() {
		for name := range readers(ctx, memblob.New(), b.ID) {
			for n, hit := 1, true; hit; n++ {
				inner := memblob.New()
				if err := all.putAll(ctx, open(inner)); err != nil {
					return err
				}
				below := NewFaulty(inner)
				var swept atomic.Pointer[error]
				below.On(func(c Call) *Fault {
					if c.Nth == n {
						err := sweepAll(ctx, inner)
						swept.Store(&err)
					}
					return nil
				})
				got, err := readers(ctx, open(below), b.ID)[name]()
				if err == nil && !bytes.Equal(got, b.Data) || err != nil && !errors.Is(err, blob.ErrNotFound) {
					return fmt.Errorf("%s with a sweep before call %d below: got %d bytes, %v", name, n, len(got), err)
				}
				if hit = swept.Load() != nil; hit && *swept.Load() != nil {
					return *swept.Load()
				}
			}
		}
	}
	return nil
}
