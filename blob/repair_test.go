package blob_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
)

// mending is a store whose blobs are damaged until they are repaired.
type mending struct {
	blob.Store
	damaged map[blob.ID]bool
	fails   error
	repairs int
}

func (m *mending) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if m.damaged[id] {
		return nil, blob.Corrupt(id, "damaged by the test")
	}
	return m.Store.Get(ctx, id)
}

func (m *mending) Repair(_ context.Context, b blob.Blob) error {
	m.repairs++
	if m.fails == nil {
		delete(m.damaged, b.ID)
	}
	return m.fails
}

func (m *mending) RepairFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if _, err := blob.ReadExactly(r, size); err != nil {
		return err
	}
	return m.Repair(ctx, blob.Blob{ID: id})
}

func newMending(t *testing.T, b blob.Blob) (*mending, blob.Store) {
	t.Helper()
	m := &mending{Store: memblob.New(), damaged: map[blob.ID]bool{b.ID: true}}
	if err := m.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return m, blob.Repairing(m, m)
}

func TestOnlyWhatAReadFoundDamagedIsRepaired(t *testing.T) {
	b := blob.New([]byte("content"))
	m, s := newMending(t, b)
	if err := s.Put(t.Context(), b); err != nil || m.repairs != 0 {
		t.Errorf("put before a read: %v after %d repairs, want none", err, m.repairs)
	}
	if _, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
		t.Fatalf("get: got %v, want ErrCorrupt", err)
	}
	for range 2 {
		if err := s.Put(t.Context(), b); err != nil || m.repairs != 1 {
			t.Errorf("put after a read: %v after %d repairs, want one", err, m.repairs)
		}
	}
	if data, err := s.Get(t.Context(), b.ID); err != nil || string(data) != "content" {
		t.Errorf("get after the repair: got %q, %v", data, err)
	}
}

// TestAFailedRepairIsReported, but for a store that cannot be written: it takes blobs
// for a look all the same.
func TestAFailedRepairIsReported(t *testing.T) {
	for _, fails := range []error{blob.ErrFull, blob.ErrReadOnly} {
		b := blob.New([]byte("content"))
		m, s := newMending(t, b)
		m.fails = fails
		if _, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
			t.Fatalf("get: got %v, want ErrCorrupt", err)
		}
		err := s.Put(t.Context(), b)
		if fails == blob.ErrReadOnly && err != nil || fails == blob.ErrFull && !errors.Is(err, blob.ErrFull) {
			t.Errorf("put where a repair fails with %q: got %v", fails, err)
		}
		m.fails = nil
		if err := s.Put(t.Context(), b); err != nil || len(m.damaged) != 0 {
			t.Errorf("put once a repair is possible: got %v, %d still damaged", err, len(m.damaged))
		}
	}
}
