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

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
)

// RunModel runs random histories against a store and a plain map, and reports the
// shortest history in which they differ. All histories share one store, each with its
// own content, so opening may be slow.
func RunModel(t *testing.T, open func(t *testing.T) blob.Store) {
	t.Run("model", func(t *testing.T) {
		store := open(t)
		var histories atomic.Uint64
		rapid.Check(t, func(rt *rapid.T) {
			m := &model{ctx: t.Context(), store: store, blobs: make(map[blob.ID][]byte)}
			m.salt = fmt.Appendf(nil, "%08x", histories.Add(1))
			rt.Repeat(rapid.StateMachineActions(m))
		})
	})
}

// model is the state machine: its exported methods are the actions.
type model struct {
	ctx   context.Context // of the test, for all actions
	store blob.Store
	salt  []byte // all contents of this history begin with it, and no others
	blobs map[blob.ID][]byte
	ids   []blob.ID // the keys of blobs, in the order of their puts
}

// content draws from a few short contents, so that blobs repeat, and from some long
// ones.
func (m *model) content(t *rapid.T) []byte {
	length := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 300), rapid.SampledFrom([]int{4096, 70_000, 200_000})).Draw(t, "length")
	data := slices.Clone(m.salt)
	fill := rapid.Byte().Draw(t, "fill")
	for i := range length {
		data = append(data, fill+byte(i*i>>5))
	}
	return data
}

func (m *model) remember(id blob.ID, data []byte) {
	if _, ok := m.blobs[id]; !ok {
		m.ids = append(m.ids, id)
	}
	m.blobs[id] = data
}

func (m *model) stored(t *rapid.T, label string) blob.ID {
	if len(m.ids) == 0 {
		t.Skip("nothing is stored yet")
	}
	return rapid.SampledFrom(m.ids).Draw(t, label)
}

// Put stores some blobs, some of them with hints.
func (m *model) Put(t *rapid.T) {
	var blobs []blob.Blob
	for range rapid.IntRange(0, 4).Draw(t, "count") {
		b := blob.New(m.content(t))
		b.LocalOnly = rapid.Bool().Draw(t, "local only")
		if len(m.ids) > 0 && rapid.Bool().Draw(t, "hint") {
			b.Like = m.stored(t, "like")
		}
		blobs = append(blobs, b)
	}
	if err := m.store.Put(m.ctx, blobs...); err != nil {
		t.Fatalf("put %d blobs: %v", len(blobs), err)
	}
	for _, b := range blobs {
		m.remember(b.ID, slices.Clone(b.Data))
		clear(b.Data) // the store must not use it any more
	}
}

// Extend stores a blob that begins like another one.
func (m *model) Extend(t *rapid.T) {
	like := m.stored(t, "like")
	keep := rapid.IntRange(len(m.salt), len(m.blobs[like])).Draw(t, "keep")
	rest := m.content(t)
	whole := slices.Concat(m.blobs[like][:keep], rest)
	b := blob.Blob{ID: blob.Sum(whole), Data: rest, Like: like, Keep: int64(keep)}
	if err := m.store.Put(m.ctx, b); err != nil {
		t.Fatalf("extend %s, keeping %d bytes: %v", like.Short(), keep, err)
	}
	m.remember(b.ID, whole)
}

// PutFrom streams a blob in; sometimes the source is shorter or longer than
// announced.
func (m *model) PutFrom(t *rapid.T) {
	data := m.content(t)
	id, off := blob.Sum(data), rapid.SampledFrom([]int{0, 0, 0, -1, 1}).Draw(t, "off by")
	err := blob.PutFrom(m.ctx, m.store, id, bytes.NewReader(data), int64(len(data)+off))
	if off == 0 && err != nil {
		t.Fatalf("put %d bytes from a reader: %v", len(data), err)
	}
	if off != 0 && err == nil {
		t.Fatalf("put %d bytes announced as %d: got no error", len(data), len(data)+off)
	}
	if err == nil {
		m.remember(id, data)
	}
}

// Get reads a blob that may or may not be there.
func (m *model) Get(t *rapid.T) {
	id := m.anyID(t)
	got, err := m.store.Get(m.ctx, id)
	m.compare(t, id, got, err)
	scribbled := got[:cap(got)]
	for i := range scribbled {
		scribbled[i]++
	}
}

// Open streams out a blob that may or may not be there.
func (m *model) Open(t *rapid.T) {
	id := m.anyID(t)
	r, err := blob.Open(m.ctx, m.store, id)
	var got []byte
	if err == nil {
		got, err = io.ReadAll(r)
		err = errors.Join(err, r.Close())
	}
	m.compare(t, id, got, err)
}

// Flush requests durability, which only the drivers' own tests can check.
func (m *model) Flush(t *rapid.T) {
	if err := m.store.Flush(m.ctx); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// Check runs after every action.
func (m *model) Check(t *rapid.T) {
	absent := blob.Sum(append(slices.Clone(m.salt), "absent"...))
	ids := append(slices.Clone(m.ids), absent)
	has, err := m.store.Has(m.ctx, ids...)
	if err != nil || len(has) != len(ids) {
		t.Fatalf("has of %d ids: got %d answers, %v", len(ids), len(has), err)
	}
	for i, id := range ids {
		if _, want := m.blobs[id]; has[i] != want {
			t.Fatalf("has %s: got %t, want %t", id.Short(), has[i], want)
		}
	}
}

func (m *model) anyID(t *rapid.T) blob.ID {
	if len(m.ids) == 0 || rapid.IntRange(0, 4).Draw(t, "absent") == 0 {
		return blob.Sum(m.content(t))
	}
	return m.stored(t, "id")
}

func (m *model) compare(t *rapid.T, id blob.ID, got []byte, err error) {
	want, ok := m.blobs[id]
	switch {
	case !ok && !errors.Is(err, blob.ErrNotFound):
		t.Fatalf("read absent %s: got %d bytes, %v, want ErrNotFound", id.Short(), len(got), err)
	case ok && err != nil:
		t.Fatalf("read %s: %v", id.Short(), err)
	case ok && !bytes.Equal(got, want):
		t.Fatalf("read %s: got %d bytes, want %d others", id.Short(), len(got), len(want))
	}
}
