package encrypted

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
)

// sizes are around every boundary of the two suites.
var sizes = []int{0, 1, 31, 1000, segmentSize - 1, segmentSize, segmentSize + 1, 2 * segmentSize, 3*segmentSize + 5}

// wantRefused checks that no way of reading gives out stored bytes that are not
// the ones written.
func wantRefused(t *testing.T, s *Store, b blob.Blob, what string, args ...any) {
	t.Helper()
	if got, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
		t.Fatalf(what+": get gave %d bytes and %v, want ErrCorrupt", append(args, len(got), err)...)
	}
	got, err := readAll(t.Context(), s, b.ID)
	if !errors.Is(err, blob.ErrCorrupt) {
		t.Fatalf(what+": reading gave %d bytes and %v, want ErrCorrupt", append(args, len(got), err)...)
	}
	if !bytes.HasPrefix(b.Data, got) {
		t.Fatalf(what+": reading gave out other bytes", args...)
	}
}

func TestEveryFlippedBitIsDetected(t *testing.T) {
	below := newBytesStore()
	s := newStore(below, newRing(t), nil)
	random := rand.New(rand.NewPCG(1, 2))
	flips := testenv.Scale(2000, 100_000)
	for _, n := range sizes {
		b, base := randomBlob(n), randomBlob(n+64) // never a blob that was put before
		b.Base = base.ID
		mustPut(t, s, base, b)
		name := s.Name(b.ID)
		good := below.stored(name)
		for i := range flips / len(sizes) {
			bit := random.IntN(len(good) * 8)
			if i%2 == 1 { // the head is small and has the most to get wrong
				bit = random.IntN(maxHead * 8)
			}
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			below.set(name, bad)
			if got, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
				t.Fatalf("%d bytes, bit %d: get gave %d bytes and %v, want ErrCorrupt", n, bit, len(got), err)
			}
			if i%8 == 0 {
				wantRefused(t, s, b, "%d bytes, bit %d", n, bit)
			}
		}
		below.set(name, good)
		mustGet(t, s, b)
	}
}

func TestEveryCutAndAdditionIsDetected(t *testing.T) {
	below := newBytesStore()
	s := newStore(below, newRing(t), nil)
	for _, n := range sizes {
		b := randomBlob(n)
		mustPut(t, s, b)
		name := s.Name(b.ID)
		good := below.stored(name)
		cuts := []int{0, 1, headerSize - 1, headerSize, headerSize + 1, headerSize + 48, len(good) / 2, len(good) - tagSize, len(good) - 1}
		for at := headerSize + 48; at < len(good); at += segmentSize + tagSize {
			cuts = append(cuts, at)
		}
		for _, cut := range cuts {
			below.set(name, good[:cut])
			wantRefused(t, s, b, "%d bytes cut to %d of %d", n, cut, len(good))
		}
		for _, more := range [][]byte{{0}, make([]byte, tagSize), good, make([]byte, segmentSize+tagSize)} {
			below.set(name, slices.Concat(good, more))
			wantRefused(t, s, b, "%d bytes and %d more", n, len(more))
		}
	}
}

func TestMovedSegmentsAreDetected(t *testing.T) {
	below := newBytesStore()
	s := newStore(below, newRing(t), nil)
	b := randomBlob(4 * segmentSize)
	mustPut(t, s, b)
	name := s.Name(b.ID)
	good := below.stored(name)
	head := headerSize + blob.IDSize + tagSize
	segment := func(i int) []byte { return good[head+i*(segmentSize+tagSize):][:segmentSize+tagSize] }
	for what, order := range map[string][]int{
		"swapped": {1, 0, 2, 3}, "repeated": {0, 0, 1, 2, 3}, "dropped": {0, 1, 3}, "cut": {0, 1, 2}, "last twice": {0, 1, 2, 3, 3}, "last only": {3},
	} {
		bad := bytes.Clone(good[:head])
		for _, i := range order {
			bad = append(bad, segment(i)...)
		}
		below.set(name, bad)
		wantRefused(t, s, b, "%s", what)
	}
}

func TestSwappedEnvelopesAreDetected(t *testing.T) {
	below := newBytesStore()
	s := newStore(below, newRing(t), nil)
	a, b := randomBlob(1000), randomBlob(1000)
	mustPut(t, s, a, b)
	sealedA, sealedB := below.stored(s.Name(a.ID)), below.stored(s.Name(b.ID))
	below.set(s.Name(a.ID), sealedB)
	below.set(s.Name(b.ID), sealedA)
	wantRefused(t, s, a, "a under the name of b")
	wantRefused(t, s, b, "b under the name of a")
	// The head of one and the body of the other.
	head := headerSize + blob.IDSize + tagSize
	below.set(s.Name(a.ID), slices.Concat(sealedA[:head], sealedB[head:]))
	wantRefused(t, s, a, "head of a, body of b")
}

func TestLaterFormsAreRefusedAsSuch(t *testing.T) {
	below := newBytesStore()
	s := newStore(below, newRing(t), nil)
	b := randomBlob(1000)
	mustPut(t, s, b)
	name := s.Name(b.ID)
	good := below.stored(name)
	for what, change := range map[string]func([]byte){
		"version": func(d []byte) { d[offVersion] = 2 },
		"suite":   func(d []byte) { d[offSuite] = 3 },
		"flags":   func(d []byte) { d[offFlags] = 0x82 },
		"segment": func(d []byte) { d[offSegment] = 30 },
	} {
		later := bytes.Clone(good)
		change(later)
		binary.BigEndian.PutUint32(later[offCRC:], crc32.Checksum(later[:offCRC], castagnoli))
		below.set(name, later)
		_, getErr := s.Get(t.Context(), b.ID)
		_, openErr := s.Open(t.Context(), b.ID)
		for _, err := range []error{getErr, openErr} {
			if !errors.Is(err, ErrUnknownEnvelope) || errors.Is(err, blob.ErrCorrupt) {
				t.Errorf("other %s: %v, want ErrUnknownEnvelope", what, err)
			}
		}
	}
}

// A reader that is at the end of a segment asks for more at once, so that the
// bytes of the last segment and the end come in separate calls.
func TestReadersOfAnyAppetite(t *testing.T) {
	s := newStore(newBytesStore(), newRing(t), nil)
	b := randomBlob(2*segmentSize + 100)
	if err := s.PutFrom(t.Context(), b.ID, bytes.NewReader(b.Data), int64(len(b.Data))); err != nil {
		t.Fatal(err)
	}
	for _, appetite := range []int{1, 7, tagSize, segmentSize - 1, segmentSize, segmentSize + 1, 1 << 20} {
		r, err := s.Open(t.Context(), b.ID)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		p := make([]byte, appetite)
		for err == nil {
			var n int
			n, err = r.Read(p)
			got = append(got, p[:n]...)
		}
		if err != io.EOF || !bytes.Equal(got, b.Data) {
			t.Errorf("%d bytes at a time: %d bytes and %v", appetite, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if n, err := r.Read(p); n != 0 || err == nil {
			t.Errorf("read after the end: %d, %v", n, err)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	below := newBytesStore()
	s := newStore(below, newRing(f), nil)
	b, base := randomBlob(100), randomBlob(segmentSize+10)
	b.Base = base.ID
	if err := s.Put(f.Context(), base, b); err != nil {
		f.Fatal(err)
	}
	name := s.Name(b.ID)
	good := below.stored(name)
	f.Add(good)
	f.Add(good[:headerSize])
	f.Add(below.stored(s.Name(base.ID)))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		same := bytes.Equal(data, good)
		below.set(name, data)
		got, err := s.Get(t.Context(), b.ID)
		streamed, streamErr := readAll(t.Context(), s, b.ID)
		if (err == nil) != same || (streamErr == nil) != same {
			t.Fatalf("get: %v, reading: %v, want success: %t", err, streamErr, same)
		}
		if same && (!bytes.Equal(got, b.Data) || !bytes.Equal(streamed, b.Data)) {
			t.Fatal("other bytes")
		}
		for _, err := range []error{err, streamErr} {
			if !same && !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, blob.ErrWrongKey) && !errors.Is(err, ErrUnknownEnvelope) {
				t.Fatalf("untyped error: %v", err)
			}
		}
	})
}
