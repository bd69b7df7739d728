package encrypted

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/retrying"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/sqlite"
)

func TestConformance(t *testing.T) {
	ring := newRing(t)
	for name, open := range map[string]func(t *testing.T) blob.Store{
		"alone": func(t *testing.T) blob.Store { return newStore(memblob.New(), ring, nil) },
		"checked": func(t *testing.T) blob.Store {
			return blob.Checked(newStore(memblob.New(), ring, &Options{Tenant: "acme"}))
		},
		"twice": func(t *testing.T) blob.Store {
			return newStore(newStore(memblob.New(), ring, &Options{Tenant: "a"}), newRing(t), &Options{Tenant: "b"})
		},
		"migrating": func(t *testing.T) blob.Store {
			return newStore(memblob.New(), ring, &Options{Seed: NewSeedKey("k"), AllowSeedForm: true})
		},
		"in the middle": func(t *testing.T) blob.Store {
			return blob.Checked(cached.New(compressed.New(newStore(retrying.New(memblob.New(), nil), ring, nil), nil), nil))
		},
		"above a driver that replaces": func(t *testing.T) blob.Store { return newStore(openDriver(t).Blobs(), ring, nil) },
		"below streams not":            func(t *testing.T) blob.Store { return newStore(newBytesStore(), ring, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			opts := &blobtest.Options{MaxBytes: 4 << 20}
			if name == "checked" {
				opts = nil // once with the largest blobs is enough
			}
			if name == "above a driver that replaces" { // which waits for the disk
				testenv.OnlyFull(t)
			}
			if name == "below streams not" { // and cannot be swept
				open = withoutSweeper(open)
			}
			blobtest.RunWith(t, open, opts)
			if name == "in the middle" || name == "migrating" || testenv.Long() {
				blobtest.RunModel(t, open)
			}
		})
	}
}

func openDriver(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// withoutSweeper hides Sweep, which the store below does not offer.
func withoutSweeper(open func(t *testing.T) blob.Store) func(t *testing.T) blob.Store {
	return func(t *testing.T) blob.Store {
		s := open(t).(*Store)
		return struct {
			blob.Store
			blob.Streamer
			blob.Lister
		}{s, s, s}
	}
}

func TestTheStoreBelowSeesNothing(t *testing.T) {
	below, ring := newBytesStore(), newRing(t)
	s := newStore(below, ring, nil)
	base := blob.New([]byte("a secret that nobody may see, the first"))
	b := blob.New([]byte("a secret that nobody may see, the second"))
	b.Base, b.Like = base.ID, base.ID
	mustPut(t, s, base, b)
	for name, stored := range below.blobs {
		for _, secret := range [][]byte{b.Data[:20], b.ID[:8], base.ID[:8]} {
			if bytes.Contains(stored.Data, secret) || bytes.Contains(name[:], secret) || bytes.Contains(stored.Base[:], secret) {
				t.Errorf("the store below sees %x", secret)
			}
		}
		if !stored.Like.IsZero() || stored.Keep != 0 {
			t.Error("the store below is told what is alike")
		}
	}
	if below.blobs[s.Name(b.ID)].Base != s.Name(base.ID) {
		t.Error("the base is not passed down under its name")
	}
	first := below.stored(s.Name(b.ID))
	again := newStore(newBytesStore(), ring, nil)
	mustPut(t, again, b)
	if bytes.Equal(first, again.inner.(*bytesStore).stored(s.Name(b.ID))) {
		t.Error("sealing twice gives the same bytes")
	}
}

func TestTenantsDoNotMeet(t *testing.T) {
	below, ring := newBytesStore(), newRing(t)
	a, b := newStore(below, ring, &Options{Tenant: "a"}), newStore(below, ring, &Options{Tenant: "b"})
	secret := randomBlob(100)
	mustPut(t, a, secret)
	if has, err := b.Has(t.Context(), secret.ID); err != nil || has[0] {
		t.Errorf("tenant b finds what a has: %v, %v", has, err)
	}
	if _, err := b.Get(t.Context(), secret.ID); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("tenant b gets %v, want ErrNotFound", err)
	}
	// An attacker moves the envelope to where b looks for it.
	below.set(b.Name(secret.ID), below.stored(a.Name(secret.ID)))
	if _, err := b.Get(t.Context(), secret.ID); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("tenant b opens what belongs to a: %v", err)
	}
}

func TestWrongKeyIsNamed(t *testing.T) {
	below, ring := newBytesStore(), newRing(t)
	b := randomBlob(100)
	s := newStore(below, ring, nil)
	mustPut(t, s, b)
	other := newRing(t)
	wrong := newStore(below, other, nil)
	key, _ := ring.Active()

	// The other ring looks under another name: the store must not seem empty.
	_, err := wrong.Get(t.Context(), b.ID)
	wantWrongKey(t, err, key)
	_, err = wrong.Open(t.Context(), b.ID)
	wantWrongKey(t, err, key)
	_, err = wrong.Has(t.Context(), b.ID)
	wantWrongKey(t, err, key)

	// The right name, and a key that is gone.
	below.set(wrong.Name(b.ID), below.stored(s.Name(b.ID)))
	_, err = wrong.Get(t.Context(), b.ID)
	wantWrongKey(t, err, key)

	shared := newStore(below, other, &Options{Shared: true})
	if _, err := shared.Get(t.Context(), randomBlob(9).ID); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("in a shared store: %v, want ErrNotFound", err)
	}
}

func wantWrongKey(t *testing.T, err error, key keyring.Key) {
	t.Helper()
	if !errors.Is(err, blob.ErrWrongKey) || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("%v, want ErrWrongKey", err)
	} else if !strings.Contains(err.Error(), key.ID().String()) {
		t.Errorf("%v does not name key %s", err, key.ID())
	}
}

func TestMissingKeysAreErrorsOfEveryCall(t *testing.T) {
	for name, s := range map[string]*Store{
		"no ring":     newStore(memblob.New(), nil, nil),
		"zero ring":   newStore(memblob.New(), &keyring.Ring{}, nil),
		"no seed key": newStore(memblob.New(), newRing(t), &Options{AllowSeedForm: true}),
		"nothing":     newStore(memblob.New(), nil, &Options{WriteSeedForm: true}),
	} {
		ctx, b := t.Context(), randomBlob(10)
		_, getErr := s.Get(ctx, b.ID)
		_, hasErr := s.Has(ctx, b.ID)
		_, openErr := s.Open(ctx, b.ID)
		_, beginErr := s.Begin(ctx)
		_, sweepErr := s.Sweep(ctx, 0, blob.SweepOptions{})
		_, reencryptErr := s.Reencrypt(ctx, nil)
		for call, err := range map[string]error{
			"get": getErr, "has": hasErr, "open": openErr, "begin": beginErr, "sweep": sweepErr, "reencrypt": reencryptErr,
			"put": s.Put(ctx, b), "put from": s.PutFrom(ctx, b.ID, bytes.NewReader(b.Data), 10),
			"flush": s.Flush(ctx), "list": s.List(ctx, blob.ID{}, nil),
		} {
			if !errors.Is(err, ErrNoKey) {
				t.Errorf("%s: %s gave %v, want ErrNoKey", name, call, err)
			}
		}
	}
}

func TestRotationKeepsOldBlobsReadable(t *testing.T) {
	below, ring := newBytesStore(), newRing(t)
	s := newStore(below, ring, nil)
	var blobs []blob.Blob
	for i := range 5 {
		b := randomBlob(50 << (3 * i))
		mustPut(t, s, b)
		blobs = append(blobs, b)
		rotate(t, ring)
	}
	for _, b := range blobs {
		mustGet(t, s, b)
	}
}

func TestKeysOfAnotherProcessAreUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	unlock := keyring.Raw(make([]byte, 32))
	mine, err := keyring.Create(path, unlock)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := keyring.Open(path, unlock)
	if err != nil {
		t.Fatal(err)
	}
	rotate(t, theirs)
	below, b := newBytesStore(), randomBlob(100)
	mustPut(t, newStore(below, theirs, nil), b)
	mustGet(t, newStore(below, mine, nil), b)
}

func TestNothingPrintsAKey(t *testing.T) {
	const canary = "canary-seed-key"
	opts := &Options{Seed: NewSeedKey(canary), AllowSeedForm: true}
	s := newStore(memblob.New(), newRing(t), opts)
	holder := struct {
		s *Store
		o *Options
		k SeedKey
	}{s, opts, *opts.Seed}
	var text strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&text, verb+verb+verb+verb, s, opts, opts.Seed, holder)
	}
	// An expanded AES key is 60 numbers: nothing printed may come near that.
	if strings.Contains(text.String(), canary) || strings.Count(text.String(), " ") > 300 {
		t.Errorf("printing shows %s", text.String())
	}
}

func TestSeedVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		content, err := NewSeedKey(v.key).open(blob.Sum(v.plain), bytes.Clone(v.stored))
		if err != nil || !bytes.Equal(content, v.plain) {
			t.Errorf("%q: got %q and %v", v.plain, content, err)
		}
		below := newBytesStore()
		below.set(blob.Sum(v.plain), v.stored)
		s := newStore(below, nil, &Options{Seed: NewSeedKey(v.key), WriteSeedForm: true})
		mustGet(t, s, blob.New(v.plain))
	}
}

func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/format/encrypted.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{magic, fmt.Sprint(headerSize), "stet blob v1", "stet blob name v1"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page of the format does not mention %q", want)
		}
	}
}

func TestLayer(t *testing.T) {
	ring := newRing(t)
	blobtest.RunLayer(t, func(_ *testing.T, inner blob.Store) blob.Store { return newStore(inner, ring, nil) })
}
