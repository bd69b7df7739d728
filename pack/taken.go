package pack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// maxTaken limits the bytes of read blobs that all running archivings together keep.
// Blobs that do not fit are read again.
const maxTaken = 64 << 20

// taken keeps the blobs that an archiving reads to find out what belongs to a
// conversation, as they are stored, so that each is read once: the packed bytes are those
// that the layers above verified.
type taken struct {
	s *Store

	mu    sync.Mutex // guards what follows
	blobs map[blob.ID]blob.Blob
	bytes int64
}

type takenKey struct{}

// taking returns a context for the reads of an archiving.
func (s *Store) taking(ctx context.Context) (context.Context, *taken) {
	t := &taken{s: s, blobs: make(map[blob.ID]blob.Blob)}
	return context.WithValue(ctx, takenKey{}, t), t
}

// takenIn returns the blobs kept by the archiving that reads with a context, or nil.
func takenIn(ctx context.Context) *taken {
	t, _ := ctx.Value(takenKey{}).(*taken)
	return t
}

// keep keeps a blob if there is room for it.
func (t *taken) keep(one blob.Blob) {
	size := int64(len(one.Data))
	if t.s.takenBytes.Add(size) > maxTaken {
		t.s.takenBytes.Add(-size)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, twice := t.blobs[one.ID]; twice || t.blobs == nil {
		t.s.takenBytes.Add(-size)
		return
	}
	t.bytes += size
	one.Data = bytes.Clone(one.Data) // the reader may change its own
	t.blobs[one.ID] = one
}

// get returns a blob that was read.
func (t *taken) get(id blob.ID) (blob.Blob, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, ok := t.blobs[id]
	return one, ok
}

// end gives the room back.
func (t *taken) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.takenBytes.Add(-t.bytes)
	t.bytes, t.blobs = 0, nil
}

// get reads a blob from the driver. An archiving keeps it.
func (s *Store) get(ctx context.Context, id blob.ID) ([]byte, error) {
	if t := takenIn(ctx); t != nil && s.driver.Rewriter != nil {
		one, err := s.driver.Rewriter.Kept(ctx, id)
		if err == nil {
			t.keep(one)
		}
		if !errors.Is(err, blob.ErrNotFound) { // it may not be durable yet
			return one.Data, err
		}
	}
	return s.blobs.Get(ctx, id)
}

// openBlob is get for a stream. Only what the driver holds in memory anyway is kept.
func (s *Store) openBlob(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	if t := takenIn(ctx); t != nil && s.driver.Inline != nil {
		one, inline, err := s.driver.Inline(ctx, id)
		switch {
		case err == nil && inline:
			t.keep(one)
			return io.NopCloser(bytes.NewReader(one.Data)), nil
		case err != nil && !errors.Is(err, blob.ErrNotFound):
			return nil, err
		}
	}
	return blob.Open(ctx, s.blobs, id)
}
