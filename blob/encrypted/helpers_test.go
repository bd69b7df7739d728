package encrypted

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/keyring"
)

func newRing(t testing.TB) *keyring.Ring {
	t.Helper()
	key := make([]byte, 32)
	rand.Read(key)
	ring, err := keyring.Create(filepath.Join(t.TempDir(), "keys.json"), keyring.Raw(key))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func rotate(t testing.TB, ring *keyring.Ring) {
	t.Helper()
	if err := ring.Rotate(); err != nil {
		t.Fatal(err)
	}
}

func randomBlob(n int) blob.Blob {
	data := make([]byte, n)
	rand.Read(data)
	return blob.New(data)
}

func mustPut(t testing.TB, s blob.Store, blobs ...blob.Blob) {
	t.Helper()
	if err := s.Put(t.Context(), blobs...); err != nil {
		t.Fatal(err)
	}
}

func mustGet(t testing.TB, s blob.Store, b blob.Blob) {
	t.Helper()
	got, err := s.Get(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, b.Data) {
		t.Fatalf("got %d bytes with SHA-256 %s, want %d with %s", len(got), blob.Sum(got), len(b.Data), b.ID)
	}
	if streamed, err := readAll(t.Context(), s, b.ID); err != nil || !bytes.Equal(streamed, b.Data) {
		t.Fatalf("streamed %d bytes and %v, want %d", len(streamed), err, len(b.Data))
	}
}

func readAll(ctx context.Context, s blob.Store, id blob.ID) ([]byte, error) {
	r, err := blob.Open(ctx, s, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// bytesStore is a disk that a test can damage: it lists, streams and replaces.
type bytesStore struct {
	mu    sync.Mutex
	blobs map[blob.ID]blob.Blob // guarded by mu
	// replaceErr makes Replace fail.
	replaceErr error
}

func newBytesStore() *bytesStore { return &bytesStore{blobs: map[blob.ID]blob.Blob{}} }

func (s *bytesStore) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[id]
	if !ok {
		return nil, blob.NotFound(id)
	}
	return bytes.Clone(b.Data), ctx.Err()
}

func (s *bytesStore) Put(ctx context.Context, blobs ...blob.Blob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blobs {
		if _, ok := s.blobs[b.ID]; !ok {
			b.Data = bytes.Clone(b.Data)
			s.blobs[b.ID] = b
		}
	}
	return ctx.Err()
}

func (s *bytesStore) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := make([]bool, len(ids))
	for i, id := range ids {
		_, has[i] = s.blobs[id]
	}
	return has, ctx.Err()
}

func (s *bytesStore) Flush(ctx context.Context) error { return ctx.Err() }

func (s *bytesStore) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	s.mu.Lock()
	defer s.mu.Unlock() // fn must not call the store: walk is held to that
	for _, id := range slices.SortedFunc(maps.Keys(s.blobs), blob.ID.Compare) {
		if id.Compare(after) > 0 {
			if err := fn(blob.Info{ID: id, Stored: int64(len(s.blobs[id].Data)), Base: s.blobs[id].Base}); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (s *bytesStore) Replace(ctx context.Context, blobs ...blob.Blob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replaceErr != nil {
		return s.replaceErr
	}
	for _, b := range blobs {
		_, leans := s.blobs[b.Base]
		if _, stored := s.blobs[b.ID]; stored && (leans || b.Base.IsZero()) {
			b.Data = bytes.Clone(b.Data)
			s.blobs[b.ID] = b
		}
	}
	return ctx.Err()
}

func (s *bytesStore) ReplaceFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replaceErr != nil {
		return s.replaceErr
	}
	b := s.blobs[id]
	b.Data = data
	s.blobs[id] = b
	return ctx.Err()
}

// set puts stored bytes as they are.
func (s *bytesStore) set(name blob.ID, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.blobs[name]
	b.ID, b.Data = name, data
	s.blobs[name] = b
}

// stored returns a copy of what is kept under a name.
func (s *bytesStore) stored(name blob.ID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.blobs[name].Data)
}

// newStore is New with everything that the store below can do, whatever it is.
func newStore(below blob.Store, ring *keyring.Ring, opts *Options) *Store {
	var all Options
	if opts != nil {
		all = *opts
	}
	all.Lister, _ = below.(blob.Lister)
	all.Sweeper, _ = below.(blob.Sweeper)
	all.Replacer, _ = below.(blob.Replacer)
	all.Arrivals, _ = below.(blob.Arrivals)
	return New(below, ring, &all)
}
