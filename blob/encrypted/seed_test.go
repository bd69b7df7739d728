package encrypted

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
)

type vector struct {
	key           string
	plain, stored []byte
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/seed_vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []vector
	for line := range bytes.Lines(data) {
		var v struct{ KeyStr, Plaintext, Stored string }
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		stored, err := hex.DecodeString(v.Stored)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, vector{v.KeyStr, []byte(v.Plaintext), stored})
	}
	if len(out) != 2 {
		t.Fatalf("%d vectors, want 2", len(out))
	}
	return out
}

func seedStore(below blob.Store) *Store {
	return newStore(below, nil, &Options{Seed: NewSeedKey("test-key"), WriteSeedForm: true})
}

func TestSeedFormIsWrittenUnderThePlainID(t *testing.T) {
	below := newBytesStore()
	s := seedStore(below)
	b := randomBlob(100_000)
	mustPut(t, s, b)
	mustGet(t, s, b)
	if got, want := len(below.stored(b.ID)), seedIV+len(b.Data)+tagSize; got != want {
		t.Errorf("stored %d bytes under the plain id, want %d", got, want)
	}
	if s.Name(b.ID) != b.ID {
		t.Error("rows would refer to another name")
	}
	wrong := blob.Blob{ID: b.ID, Data: []byte("other bytes")}
	if err := s.Put(t.Context(), wrong); !errors.Is(err, blob.ErrMismatch) {
		t.Errorf("content that readers would refuse: %v, want ErrMismatch", err)
	}
	if has, err := s.Has(t.Context(), b.ID, randomBlob(64).ID); err != nil || !has[0] || has[1] {
		t.Errorf("has: %v, %v", has, err)
	}
}

func TestSeedFormIsReadOnlyWhereAllowed(t *testing.T) {
	below, ring := newBytesStore(), newRing(t)
	b := randomBlob(1000)
	mustPut(t, seedStore(below), b)

	if _, err := newStore(below, ring, nil).Get(t.Context(), b.ID); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("not allowed, and it reads: %v", err)
	}
	allowed := newStore(below, ring, &Options{Seed: NewSeedKey("test-key"), AllowSeedForm: true})
	mustGet(t, allowed, b)
	if has, err := allowed.Has(t.Context(), b.ID); err != nil || !has[0] {
		t.Errorf("has: %v, %v", has, err)
	}

	// Another blob's envelope under this name opens, and its hash does not fit.
	other := randomBlob(1000)
	mustPut(t, seedStore(below), other)
	below.set(b.ID, below.stored(other.ID))
	wrongKey := newStore(below, ring, &Options{Seed: NewSeedKey("other key"), AllowSeedForm: true})
	for name, s := range map[string]*Store{"swapped": allowed, "other key": wrongKey} {
		if _, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
	for n := range seedIV + tagSize {
		below.set(b.ID, make([]byte, n))
		if _, err := allowed.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%d bytes: %v, want ErrCorrupt", n, err)
		}
	}
}

func TestABaseInSeedFormIsTakenOver(t *testing.T) {
	below, ring := memblob.New(), newRing(t)
	base := randomBlob(1000)
	mustPut(t, seedStore(below), base)
	s := newStore(below, ring, &Options{Seed: NewSeedKey("test-key"), AllowSeedForm: true})
	b := randomBlob(10)
	b.Base = base.ID
	mustPut(t, s, b)
	mustGet(t, newStore(below, ring, nil), base)
	orphan := randomBlob(10)
	orphan.Base = randomBlob(64).ID
	if err := s.Put(t.Context(), orphan); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a base that is nowhere: %v, want ErrNotFound", err)
	}
}

func TestMigrationFromSeedForm(t *testing.T) {
	below, ring := memblob.New(), newRing(t)
	old := seedStore(below)
	var blobs []blob.Blob
	for i := range 20 {
		blobs = append(blobs, randomBlob(i*i*200))
	}
	mustPut(t, old, blobs...)
	s := newStore(below, ring, &Options{Seed: NewSeedKey("test-key"), AllowSeedForm: true})
	for round, want := range []int64{20, 0} {
		result, err := s.Reencrypt(t.Context(), nil)
		if err != nil || result.Resealed != want || result.Unreadable != 0 {
			t.Fatalf("round %d: %+v, %v, want %d resealed", round, result, err, want)
		}
	}
	for _, b := range blobs {
		mustGet(t, newStore(below, ring, nil), b)
	}
	// Both copies are there; the list names each blob once, and a sweep that holds
	// everything live removes the old copies alone.
	if got := len(listIDs(t, s)); got != 20 {
		t.Errorf("list has %d blobs, want 20", got)
	}
	generation, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Sweep(t.Context(), generation, blob.SweepOptions{Live: func(blob.ID) bool { return true }})
	if err != nil || result.Removed != 20 || result.Kept != 20 {
		t.Errorf("sweep: %+v, %v", result, err)
	}
	for _, b := range blobs {
		mustGet(t, newStore(below, ring, nil), b)
		if _, err := old.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("the old copy: %v, want ErrNotFound", err)
		}
	}
}

func listIDs(t *testing.T, s *Store) map[blob.ID]blob.Info {
	t.Helper()
	ids := map[blob.ID]blob.Info{}
	err := s.List(t.Context(), blob.ID{}, func(i blob.Info) error {
		ids[i.ID] = i
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
