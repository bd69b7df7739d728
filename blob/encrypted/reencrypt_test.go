package encrypted

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/keyring"
)

// filled returns a store with n blobs, some of them large and some with a base,
// sealed under a key that is retired by now.
func filled(t *testing.T, n int) (*bytesStore, *keyring.Ring, *Store, []blob.Blob) {
	below, ring := newBytesStore(), newRing(t)
	s := newStore(below, ring, &Options{Tenant: "acme"})
	var blobs []blob.Blob
	for i := range n {
		b := randomBlob(i)
		if i == 3 || i == 7 {
			b = randomBlob(maxWhole + i*segmentSize)
		}
		if i%5 == 4 {
			b.Base = blobs[i-1].ID
		}
		mustPut(t, s, b)
		blobs = append(blobs, b)
	}
	rotate(t, ring)
	return below, ring, s, blobs
}

// wantUnder checks that all blobs read back and under which keys they are.
func wantUnder(t *testing.T, s *Store, blobs []blob.Blob, active int64) {
	t.Helper()
	key, err := s.ring.Active()
	if err != nil {
		t.Fatal(err)
	}
	var got int64
	err = s.walk(t.Context(), blob.ID{}, func(f found) error {
		if f.key == key.ID() {
			got++
		}
		return f.err
	})
	if err != nil || got != active {
		t.Errorf("%d blobs under the active key, %v, want %d", got, err, active)
	}
	infos := listIDs(t, s)
	for _, b := range blobs {
		mustGet(t, s, b)
		if infos[b.ID].Base != b.Base {
			t.Errorf("base of %s became %s, want %s", b.ID.Short(), infos[b.ID].Base.Short(), b.Base.Short())
		}
	}
}

func TestReencryptReplacesWhatIsUnderRetiredKeys(t *testing.T) {
	_, _, s, blobs := filled(t, 600)
	wantUnder(t, s, blobs, 0)
	calls := 0
	result, err := s.Reencrypt(t.Context(), &ReencryptOptions{Progress: func(ReencryptResult) error { calls++; return nil }})
	if err != nil || result.Seen != 600 || result.Resealed != 600 || result.Left+result.Unreadable != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if calls != 3 {
		t.Errorf("%d calls of progress, want 3", calls)
	}
	wantUnder(t, s, blobs, 600)
}

func TestReencryptGoesOnWhereItStopped(t *testing.T) {
	_, _, s, blobs := filled(t, 600)
	stop := errors.New("stop")
	first, err := s.Reencrypt(t.Context(), &ReencryptOptions{Progress: func(ReencryptResult) error { return stop }})
	if !errors.Is(err, stop) || first.Seen != page {
		t.Fatalf("%+v, %v", first, err)
	}
	wantUnder(t, s, blobs, page)
	second, err := s.Reencrypt(t.Context(), &ReencryptOptions{After: first.Done})
	if err != nil || second.Seen != 600-page || second.Resealed != 600-page {
		t.Fatalf("%+v, %v", second, err)
	}
	wantUnder(t, s, blobs, 600)
}

func TestReencryptFailsWithoutHarm(t *testing.T) {
	below, _, s, blobs := filled(t, 30)
	below.replaceErr = errors.New("disk full")
	if _, err := s.Reencrypt(t.Context(), nil); !errors.Is(err, below.replaceErr) {
		t.Errorf("%v, want the error of the store", err)
	}
	wantUnder(t, s, blobs, 0)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Reencrypt(done, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestReencryptKeepsWhatItCannotRead(t *testing.T) {
	below, ring, _, blobs := filled(t, 30)
	var told []blob.ID
	s := newStore(below, ring, &Options{Tenant: "acme", Unreadable: func(name blob.ID, err error) {
		if !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("told %v, want ErrCorrupt", err)
		}
		told = append(told, name)
	}})
	head, body := s.Name(blobs[10].ID), s.Name(blobs[20].ID)
	damage := func(name blob.ID, at int) []byte {
		bad := below.stored(name)
		bad[(at+len(bad))%len(bad)] ^= 1
		below.set(name, bad)
		return bad
	}
	badHead, badBody := damage(head, headerSize), damage(body, -1)
	result, err := s.Reencrypt(t.Context(), nil)
	if err != nil || result.Unreadable != 2 || result.Resealed != 28 || len(told) != 2 {
		t.Errorf("%+v, %v, told of %d", result, err, len(told))
	}
	if !bytes.Equal(below.stored(head), badHead) || !bytes.Equal(below.stored(body), badBody) {
		t.Error("what could not be read was changed")
	}
}

func TestReencryptSaysWhatItCannotDo(t *testing.T) {
	below, ring := memblob.New(), newRing(t)
	s := newStore(struct {
		blob.Store
		blob.Lister
	}{below, below}, ring, nil)
	mustPut(t, s, randomBlob(10), randomBlob(20))
	rotate(t, ring)
	mustPut(t, s, randomBlob(30))
	result, err := s.Reencrypt(t.Context(), nil)
	if !errors.Is(err, errors.ErrUnsupported) || result.Left != 2 || result.Seen != 3 {
		t.Errorf("%+v, %v, want 2 left and ErrUnsupported", result, err)
	}
	if _, err := seedStore(below).Reencrypt(t.Context(), nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("store in seed form: %v, want ErrUnsupported", err)
	}
	bare := newStore(struct{ blob.Store }{below}, ring, nil)
	if err := bare.List(t.Context(), blob.ID{}, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("list: %v, want ErrUnsupported", err)
	}
	if _, err := bare.Begin(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("begin: %v, want ErrUnsupported", err)
	}
}

func TestListNamesTheRestOfADamagedStore(t *testing.T) {
	below, _, s, blobs := filled(t, 30)
	bad := s.Name(blobs[9].ID)
	below.set(bad, []byte("rubbish"))
	seen := 0
	err := s.List(t.Context(), blob.ID{}, func(blob.Info) error { seen++; return nil })
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) || !errors.Is(err, blob.ErrCorrupt) || unreadable.Count != 1 || unreadable.First != bad {
		t.Errorf("list: %v", err)
	}
	if seen != 29 {
		t.Errorf("list named %d blobs, want 29", seen)
	}
}

func TestSweepKeepsWhatItCannotRead(t *testing.T) {
	below, ring := memblob.New(), newRing(t)
	a, b := newStore(below, ring, &Options{Tenant: "a"}), newStore(below, ring, &Options{Tenant: "b"})
	mine, theirs := randomBlob(10), randomBlob(10)
	mustPut(t, a, mine)
	mustPut(t, b, theirs)
	generation, err := a.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result, err := a.Sweep(t.Context(), generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
	if err != nil || result.Removed != 1 || result.Kept != 1 {
		t.Errorf("sweep: %+v, %v", result, err)
	}
	mustGet(t, b, theirs)
	if _, err := a.Sweep(t.Context(), generation, blob.SweepOptions{}); err == nil {
		t.Error("a sweep that does not know what is live was done")
	}
}
