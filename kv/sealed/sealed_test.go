package sealed

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
	"github.com/stet-dev/stet/kv/memkv"
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

// forms are the two ways of sealing.
func forms(t testing.TB) map[string]*Options {
	return map[string]*Options{"unkeyed": nil, "keyed": {Ring: newRing(t), Tenant: "acme"}}
}

func mustSet(t testing.TB, s kv.Store, pairs ...string) {
	t.Helper()
	b := &kv.Batch{}
	for i := 0; i < len(pairs); i += 2 {
		b.Set = append(b.Set, kv.Set{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func wantRow(t testing.TB, s kv.Store, key, value string) {
	t.Helper()
	row, err := s.Get(t.Context(), key)
	if err != nil || string(row.Value) != value {
		t.Fatalf("row %q holds %d bytes, %v, want %d", key, len(row.Value), err, len(value))
	}
}

// stored returns the bytes that the store below has for a row.
func stored(t testing.TB, below kv.Store, key string) []byte {
	t.Helper()
	row, err := below.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return row.Value
}

// wantRefused checks both ways of reading a row.
func wantRefused(t testing.TB, s kv.Store, key string, want error, what string) {
	t.Helper()
	_, getErr := s.Get(t.Context(), key)
	var scanErr error
	for _, err := range s.Scan(t.Context(), kv.Range{Start: key, End: key + "\x00"}, kv.ScanOptions{}) {
		scanErr = err
	}
	for _, err := range []error{getErr, scanErr} {
		if !errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) {
			t.Fatalf("%s: %v, want %v and the key", what, err, want)
		}
	}
}

func TestConformance(t *testing.T) {
	for name, opts := range forms(t) {
		t.Run(name, func(t *testing.T) {
			kvtest.Run(t, func(t *testing.T) kv.Store { return New(memkv.New(nil), opts) })
		})
	}
}

func TestReferencesAreMapped(t *testing.T) {
	kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
		ring, blobs := newRing(t), memblob.New()
		layer := encrypted.New(blobs, ring, &encrypted.Options{Lister: blobs, Sweeper: blobs})
		return New(memkv.New(blobs), &Options{Ring: ring, Names: layer.Name}), layer
	})
}

func TestMissingBlobsOfAnotherKindKeepTheirNames(t *testing.T) {
	known, name, other := blob.ID{1}, blob.ID{2}, blob.ID{3}
	err := missingAs(map[blob.ID]blob.ID{name: known}, fmt.Errorf("commit: %w", &kv.MissingBlobsError{IDs: []blob.ID{name, other}}))
	var missing *kv.MissingBlobsError
	if !errors.As(err, &missing) || len(missing.IDs) != 2 || missing.IDs[0] != known || missing.IDs[1] != other {
		t.Errorf("%v", err)
	}
}

func TestEveryFlippedBitIsDetected(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(1, 2))
	for name, opts := range forms(t) {
		t.Run(name, func(t *testing.T) {
			below := memkv.New(nil)
			s := New(below, opts)
			for _, n := range []int{0, 1, 40, 3000} {
				mustSet(t, s, "k", strings.Repeat("v", n))
				good := stored(t, below, "k")
				for i := range testenv.Scale(2000, 100_000) / 8 {
					bit := i % (len(good) * 8) // all of a small one
					if n > 100 && i%2 == 0 {
						bit = random.IntN(len(good) * 8)
					}
					bad := bytes.Clone(good)
					bad[bit/8] ^= 1 << (bit % 8)
					mustSet(t, below, "k", string(bad))
					wantRefused(t, s, "k", kv.ErrCorrupt, fmt.Sprintf("%d bytes, bit %d", n, bit))
				}
				for cut := range min(len(good), 200) {
					mustSet(t, below, "k", string(good[:cut]))
					wantRefused(t, s, "k", kv.ErrCorrupt, fmt.Sprintf("cut to %d", cut))
				}
				mustSet(t, below, "k", string(good)+"x")
				wantRefused(t, s, "k", kv.ErrCorrupt, "a byte more")
			}
		})
	}
}

func TestMovedRowsAreDetected(t *testing.T) {
	for name, opts := range forms(t) {
		t.Run(name, func(t *testing.T) {
			below := memkv.New(nil)
			s := New(below, opts)
			mustSet(t, s, "a", "same value", "b", "same value", "ab", "c", "abc", "")
			a, b := stored(t, below, "a"), stored(t, below, "b")
			mustSet(t, below, "a", string(b), "b", string(a), "abc", string(stored(t, below, "ab")))
			for _, key := range []string{"a", "b", "abc"} {
				wantRefused(t, s, key, kv.ErrCorrupt, "swapped")
			}
			wantRow(t, s, "ab", "c")
			// Keys can be scanned whatever the values are.
			n := 0
			for _, err := range s.Scan(t.Context(), kv.Range{}, kv.ScanOptions{KeysOnly: true}) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
			if n != 4 {
				t.Errorf("%d keys, want 4", n)
			}
		})
	}
}

func TestTenantsDoNotMeet(t *testing.T) {
	ring := newRing(t)
	for name, pair := range map[string][2]*Options{
		"unkeyed": {{Tenant: "a"}, {Tenant: "b"}},
		"keyed":   {{Tenant: "a", Ring: ring}, {Tenant: "b", Ring: ring}},
	} {
		below := memkv.New(nil)
		mustSet(t, New(below, pair[0]), "k", "v")
		wantRow(t, New(below, pair[0]), "k", "v")
		wantRefused(t, New(below, pair[1]), "k", kv.ErrCorrupt, name)
	}
}

func TestKeysAndForms(t *testing.T) {
	below, ring := memkv.New(nil), newRing(t)
	keyed, unkeyed := New(below, &Options{Ring: ring}), New(below, nil)
	mustSet(t, keyed, "keyed", "a secret value")
	mustSet(t, unkeyed, "unkeyed", "v")
	if bytes.Contains(stored(t, below, "keyed"), []byte("secret")) {
		t.Error("the store below sees the value")
	}
	wantRefused(t, unkeyed, "keyed", blob.ErrWrongKey, "no ring")
	wantRefused(t, New(below, &Options{Ring: newRing(t)}), "keyed", blob.ErrWrongKey, "other ring")
	wantRefused(t, keyed, "unkeyed", kv.ErrCorrupt, "a row that everybody can make")
	wantRow(t, New(below, &Options{Ring: ring, AllowUnkeyed: true}), "unkeyed", "v")

	active, _ := ring.Active()
	_, err := New(below, &Options{Ring: newRing(t)}).Get(t.Context(), "keyed")
	if !strings.Contains(err.Error(), active.ID().String()) {
		t.Errorf("%v does not name the key", err)
	}
	if err := New(below, &Options{Ring: &keyring.Ring{}}).Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k"}}}); !errors.Is(err, keyring.ErrUnusable) {
		t.Errorf("zero ring: %v, want ErrUnusable", err)
	}
}

func TestLaterFormsAreRefusedAsSuch(t *testing.T) {
	below := memkv.New(nil)
	s := New(below, nil)
	for _, kind := range []byte{0x20, 0x10 | 4, 0x10 | 8, 0x00} {
		mustSet(t, below, "k", string(append([]byte(magic), kind, ^kind, 1, 2, 3)))
		wantRefused(t, s, "k", ErrUnknownEnvelope, fmt.Sprintf("kind %#x", kind))
	}
}

func TestTheLargestValues(t *testing.T) {
	for name, opts := range forms(t) {
		t.Run(name, func(t *testing.T) {
			s := New(memkv.New(nil), opts)
			random := make([]byte, kv.MaxValue)
			mathrand.NewChaCha8([32]byte{1}).Read(random)
			overhead := unkeyedOverhead
			if opts != nil {
				overhead = keyedOverhead
			}
			fits := string(random[:kv.MaxValue-overhead])
			mustSet(t, s, "fits", fits)
			wantRow(t, s, "fits", fits)
			shrinks := string(random[:kv.MaxValue/2]) + strings.Repeat("x", kv.MaxValue/2)
			mustSet(t, s, "shrinks", shrinks)
			wantRow(t, s, "shrinks", shrinks)
			err := s.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k", Value: random}}})
			if !errors.Is(err, kv.ErrTooLarge) {
				t.Errorf("what does not shrink: %v, want ErrTooLarge", err)
			}
		})
	}
}

func TestABombIsRefused(t *testing.T) {
	small, err := deflate(make([]byte, 1<<26))
	if err != nil {
		t.Fatal(err)
	}
	below := memkv.New(nil)
	s := New(below, nil)
	bomb := putPrefix(nil, formDeflated)
	bomb = append(append(bomb, s.digest(bomb, "k", small)...), small...)
	mustSet(t, below, "k", string(bomb))
	wantRefused(t, s, "k", kv.ErrCorrupt, "bomb")
}

func TestReseal(t *testing.T) {
	below, ring := memkv.New(nil), newRing(t)
	values := map[string]string{}
	put := func(s kv.Store, prefix string, n int) {
		for i := range n {
			key := fmt.Sprintf("%s:%03d", prefix, i)
			values[key] = strings.Repeat(key, i%9)
			mustSet(t, s, key, values[key])
		}
	}
	put(New(below, nil), "unkeyed", 70)
	s := New(below, &Options{Ring: ring, AllowUnkeyed: true})
	put(s, "old", 130)
	if err := ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	put(s, "new", 20)
	for round, want := range []int64{200, 0} {
		result, err := s.Reseal(t.Context(), kv.Range{})
		if err != nil || result.Resealed != want || result.Skipped != 0 || result.Seen < 220 {
			t.Fatalf("round %d: %+v, %v, want %d resealed", round, result, err, want)
		}
	}
	strict := New(below, &Options{Ring: ring})
	active, _ := ring.Active()
	for key, value := range values {
		wantRow(t, strict, key, value)
		if id, err := keyOf(key, stored(t, below, key)); err != nil || id != active.ID() {
			t.Errorf("row %q is under key %s, %v", key, id, err)
		}
	}
}

// racing changes a row when the first batch comes, as another writer would.
type racing struct {
	kv.Store
	change func()
}

func (r *racing) Commit(ctx context.Context, b *kv.Batch) error {
	if change := r.change; change != nil {
		r.change = nil
		change()
	}
	return r.Store.Commit(ctx, b)
}

func TestResealLeavesRowsThatOthersChange(t *testing.T) {
	below, ring := &racing{Store: memkv.New(nil)}, newRing(t)
	s := New(below, &Options{Ring: ring})
	mustSet(t, s, "a", "1", "b", "1", "c", "1")
	if err := ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	below.change = func() { mustSet(t, s, "b", "2") }
	result, err := s.Reseal(t.Context(), kv.Range{})
	if err != nil || result.Resealed != 2 || result.Skipped != 1 {
		t.Errorf("%+v, %v", result, err)
	}
	wantRow(t, s, "b", "2")
	mustSet(t, below, "c", "rubbish")
	if _, err := s.Reseal(t.Context(), kv.Range{}); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a damaged row: %v, want ErrCorrupt", err)
	}
}

func FuzzOpen(f *testing.F) {
	keyed, unkeyed := New(memkv.New(nil), &Options{Ring: newRing(f)}), New(memkv.New(nil), nil)
	for _, s := range []*Store{keyed, unkeyed} {
		good, err := s.seal("key", []byte("value"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add("key", good)
		f.Add("other", good)
		f.Add("key", good[:len(good)/2])
	}
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		for _, s := range []*Store{keyed, unkeyed} {
			value, err := s.open(key, bytes.Clone(data))
			if err == nil {
				again, err := s.seal(key, value)
				if err != nil || len(again) != len(data) && data[2]&formDeflated == 0 {
					t.Fatalf("opens and does not seal again: %v", err)
				}
			} else if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, blob.ErrWrongKey) && !errors.Is(err, ErrUnknownEnvelope) {
				t.Fatalf("untyped error: %v", err)
			}
		}
	})
}

func BenchmarkGet(b *testing.B) {
	all := forms(b)
	for _, name := range []string{"plain", "unkeyed", "keyed"} {
		b.Run(name, func(b *testing.B) {
			var s kv.Store = memkv.New(nil)
			if name != "plain" {
				s = New(s, all[name])
			}
			mustSet(b, s, "k", strings.Repeat("v", 300))
			for b.Loop() {
				if _, err := s.Get(b.Context(), "k"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestADamagedRowBesideOthers moves the value of a row: it has its own error, and the rows
// beside it can be read.
func TestADamagedRowBesideOthers(t *testing.T) {
	below := memkv.New(nil)
	s := New(below, &Options{Ring: newRing(t)})
	mustSet(t, s, "index:a", "", "index:b", "", "record:a", "A", "record:b", "B")
	mustSet(t, below, "record:a", string(stored(t, below, "record:b")))
	found, err := s.ScanBeside(t.Context(), kv.Range{Start: "index:", End: "index;"}, kv.ScanOptions{}, kv.Beside{Skip: len("index:"), Prefix: "record:", To: "\x00"})
	if err != nil || len(found) != 2 {
		t.Fatalf("found %+v, %v", found, err)
	}
	if a, b := found[0], found[1]; !errors.Is(a.Errs[0], kv.ErrCorrupt) || a.Rows[0].Value != nil || b.Errs[0] != nil || string(b.Rows[0].Value) != "B" {
		t.Errorf("found %+v", found)
	}
}
