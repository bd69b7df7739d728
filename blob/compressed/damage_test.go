package compressed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/testenv"
)

// fixture stores one blob of each kind and returns the records by id, and what
// they must be read as.
func fixture(t testing.TB) (records, contents map[blob.ID][]byte) {
	t.Helper()
	ctx := context.Background()
	inner := memblob.New()
	s := New(inner, nil)
	contents = map[blob.ID][]byte{}
	put := func(b blob.Blob, content []byte) blob.ID {
		t.Helper()
		b.ID = blob.Sum(content)
		if err := s.Put(ctx, b); err != nil {
			t.Fatal(err)
		}
		contents[b.ID] = content
		return b.ID
	}
	raw := []byte("short")
	put(blob.Blob{Data: raw}, raw)
	var lines []byte
	for i := range 60 {
		lines = fmt.Appendf(lines, "line %d of a small file %x\n", i, i*i*7919)
	}
	whole := put(blob.Blob{Data: lines}, lines)
	ext := put(blob.Blob{Data: []byte("one more line"), Like: whole, Keep: 700}, append(bytes.Clone(lines[:700]), "one more line"...))
	more := bytes.Repeat([]byte("many more lines, "), 40)
	put(blob.Blob{Data: more, Like: ext, Keep: 710}, append(bytes.Clone(contents[ext][:710]), more...))
	middle := bytes.Replace(lines, []byte("line 30"), []byte("LINE THIRTY"), 1)
	put(blob.Blob{Data: middle, Like: whole}, middle)
	var digits []byte // compresses so badly that a dictionary pays
	for i := range 120 {
		digits = fmt.Appendf(digits, "%s\n", blob.Sum([]byte{byte(i)}))
	}
	if err := s.Put(ctx, blob.New(digits)); err != nil {
		t.Fatal(err)
	}
	scattered := bytes.ReplaceAll(digits, []byte("ab"), []byte("AB"))
	put(blob.Blob{Data: scattered, Like: blob.Sum(digits)}, scattered)
	var streamed []byte
	for i := 0; len(streamed) <= streamFrom; i++ {
		streamed = fmt.Appendf(streamed, "line %d of a large file %x\n", i, i*i*7919)
	}
	id := blob.Sum(streamed)
	if err := s.PutFrom(ctx, id, bytes.NewReader(streamed), int64(len(streamed))); err != nil {
		t.Fatal(err)
	}
	contents[id] = streamed
	s = New(inner, &Options{Later: func(int64) {}})
	s.reads = 0
	hinted := bytes.Replace(lines, []byte("line 40"), []byte("LINE FORTY"), 1)
	put(blob.Blob{Data: hinted, Like: whole}, hinted)
	records = map[blob.ID][]byte{}
	kinds := map[byte]bool{}
	for id := range contents {
		data, err := inner.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		records[id] = data
		kinds[data[0]] = true
	}
	if len(kinds) != 7 {
		t.Fatalf("the fixture has kinds %v, want all seven", kinds)
	}
	return records, contents
}

// reopen returns a store over these records, one of them replaced.
func reopen(t testing.TB, records map[blob.ID][]byte, id blob.ID, record []byte) blob.Store {
	t.Helper()
	inner := memblob.New()
	for other, data := range records {
		if other == id {
			data = record
		}
		if err := inner.Put(context.Background(), blob.Blob{ID: other, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	return blob.Checked(New(inner, &Options{MaxBlob: 4 << 20}))
}

// swapped is a store in which one record can be replaced.
type swapped struct {
	blob.Store
	id     blob.ID
	record []byte
}

func (s *swapped) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == s.id {
		return bytes.Clone(s.record), nil
	}
	return s.Store.Get(ctx, id)
}

// TestFlippedBitsNeverGiveOtherBytes flips every bit of every record (a sample
// of the streamed one), and reads the blob and all that may lean on it.
func TestFlippedBitsNeverGiveOtherBytes(t *testing.T) {
	records, contents := fixture(t)
	below := &swapped{Store: memblob.New()}
	for id, record := range records {
		if err := below.Put(t.Context(), blob.Blob{ID: id, Data: record}); err != nil {
			t.Fatal(err)
		}
	}
	s := blob.Checked(New(below, nil))
	step := testenv.Sizes(5, 1, 1) // 5 meets every bit of a byte in turn
	flips, caught := 0, 0
	for id, record := range records {
		for bit := 0; bit < len(record)*8; bit += step + len(record)/5000*1000 {
			below.id, below.record = id, bytes.Clone(record)
			below.record[bit/8] ^= 1 << (bit % 8)
			flips++
			for other, want := range contents {
				if other != id && len(want) > streamFrom {
					continue // leans on nothing
				}
				got, err := s.Get(t.Context(), other)
				if err == nil && !bytes.Equal(got, want) {
					t.Fatalf("bit %d of a record of kind %d: other bytes", bit, record[0])
				}
				if err != nil && !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, blob.ErrTooLarge) {
					t.Fatalf("bit %d of a record of kind %d: %v, want ErrCorrupt", bit, record[0], err)
				}
				if other == id && err != nil {
					caught++
				}
				if other == id {
					checkStream(t, s, id, want)
				}
			}
		}
	}
	t.Logf("%d of %d flips made their blob unreadable", caught, flips)
	// A few bits mean nothing to a reader, such as the local flag and the position.
	if caught < flips*9/10 {
		t.Errorf("%d of %d flips made their blob unreadable, which is too few", caught, flips)
	}
}

// checkStream fails if a damaged blob streams as other bytes, or fails as
// anything but damage.
func checkStream(t *testing.T, s blob.Store, id blob.ID, want []byte) {
	t.Helper()
	r, err := blob.Open(t.Context(), s, id)
	var got []byte
	if err == nil {
		got, err = io.ReadAll(r)
		r.Close()
	}
	if err == nil && !bytes.Equal(got, want) {
		t.Fatal("a damaged blob streams as other bytes")
	}
	if err != nil && !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, blob.ErrTooLarge) {
		t.Fatalf("a damaged blob streams with %v, want ErrCorrupt", err)
	}
}

func TestTruncatedRecordsAreCorrupt(t *testing.T) {
	records, contents := fixture(t)
	for id, record := range records {
		for cut := 0; cut < len(record); cut += max(1, len(record)/100) {
			s := reopen(t, records, id, record[:cut])
			if _, err := s.Get(t.Context(), id); !errors.Is(err, blob.ErrCorrupt) {
				t.Fatalf("kind %d cut to %d of %d bytes: %v, want ErrCorrupt", record[0], cut, len(record), err)
			}
			r, err := blob.Open(t.Context(), s, id)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
				r.Close()
			}
			if !errors.Is(err, blob.ErrCorrupt) {
				t.Fatalf("kind %d cut to %d of %d bytes and streamed: %v, want ErrCorrupt", record[0], cut, len(contents[id]), err)
			}
		}
	}
}

// bomb returns 33 KB of zstd that inflate to 1 GiB of zeros: 8,192 blocks that
// each say "128 KiB of this byte" in four bytes.
func bomb() []byte {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3} // magic, no size given, window of 1 MiB
	const blocks, size = 8192, 128 << 10
	for i := range blocks {
		block := uint32(size<<3 | 1<<1)
		if i == blocks-1 {
			block |= 1
		}
		out = append(out, byte(block), byte(block>>8), byte(block>>16), 0)
	}
	return out
}

func TestTheBombIsOne(t *testing.T) {
	dec, err := zstd.NewReader(bytes.NewReader(bomb()))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	want := int64(testenv.Scale(32<<20, 1<<30)) // all of it takes a minute with the race detector
	if n, err := io.CopyN(io.Discard, dec, want); err != nil || len(bomb()) > 33<<10 {
		t.Errorf("%d bytes inflate to %d or more, %v, want %d", len(bomb()), n, err, want)
	}
}

func TestBombsAreRefusedWithinLittleMemory(t *testing.T) {
	frame := bomb()
	var base, id blob.ID
	base[0], id[0] = 1, 2
	header := func(kind byte, numbers ...uint64) []byte {
		out := []byte{kind}
		if kind >= kindDelta {
			out = append(out, base[:]...)
		}
		for _, n := range numbers {
			out = binary.AppendUvarint(out, n)
		}
		return out
	}
	for name, head := range map[string][]byte{
		"zstd that tells":             header(kindZstd, 1<<30),
		"zstd that lies":              header(kindZstd, 1000),
		"zstd at the largest size":    header(kindZstd, 64<<20),
		"zstd beyond 63 bits":         header(kindZstd, 1<<63+5),
		"stream that tells":           header(kindStream, 1<<30),
		"stream that lies":            header(kindStream, 1000),
		"delta that tells":            header(kindDeltaZstd, 1, 3, 0, 1<<30),
		"delta that lies":             header(kindDeltaZstd, 1, 3, 0, 1000),
		"delta with dictionary":       header(kindDeltaDict, 1, 1, 1, 64<<20),
		"delta with a huge prefix":    header(kindDelta, 1, 1<<40, 0),
		"delta with a large prefix":   header(kindDelta, 1, 32<<20, 0),
		"delta with a huge suffix":    header(kindDelta, 1, 0, 1<<59),
		"delta that shares too much":  header(kindDelta, 1, 3, 4),
		"delta beyond all positions":  header(kindDelta, maxPosition+1, 3, 0),
		"delta without position":      header(kindDelta, 0, 3, 0),
		"hint at nothing":             append([]byte{kindHinted}, make([]byte, blob.IDSize)...),
		"hint at itself":              append([]byte{kindHinted}, id[:]...),
		"hint that ends early":        header(kindHinted)[:20],
		"delta with an endless digit": append(header(kindDelta), bytes.Repeat([]byte{0xff}, 30)...),
	} {
		records := map[blob.ID][]byte{base: {kindRaw, 'a', 'b', 'c', 'd', 'e'}, id: nil}
		s := reopen(t, records, id, append(head, frame...))
		grown := allocated(func() {
			if _, err := s.Get(t.Context(), id); !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, blob.ErrTooLarge) {
				t.Errorf("%s: %v, want ErrCorrupt or ErrTooLarge", name, err)
			}
		})
		if grown > 24<<20 {
			t.Errorf("%s: took %d MiB", name, grown>>20)
		}
	}
}

func TestAFailingStoreIsNotCalledDamaged(t *testing.T) {
	records, contents := fixture(t)
	for id, record := range records {
		if record[0] != kindStream {
			continue
		}
		broken := errors.New("the line is down")
		s := New(&cutOff{Store: memblob.New(), data: record[:len(record)/2], err: broken}, nil)
		r, err := s.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n, err := io.Copy(io.Discard, r)
		if !errors.Is(err, broken) || errors.Is(err, blob.ErrCorrupt) || n == int64(len(contents[id])) {
			t.Errorf("read %d bytes, %v, want the error of the store below", n, err)
		}
	}
}

// cutOff streams the beginning of a record and then fails.
type cutOff struct {
	blob.Store
	data []byte
	err  error
}

func (c *cutOff) Open(context.Context, blob.ID) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(bytes.NewReader(c.data), iotest.ErrReader(c.err))), nil
}

func (c *cutOff) PutFrom(context.Context, blob.ID, io.Reader, int64) error { return c.err }

func TestABombThatIsStreamedStopsAtItsSize(t *testing.T) {
	id := blob.ID{1}
	s := reopen(t, map[blob.ID][]byte{id: nil}, id, append(binary.AppendUvarint([]byte{kindStream}, 100_000), bomb()...))
	r, err := blob.Open(t.Context(), s, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n > 100_000 || !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("read %d bytes, %v, want ErrCorrupt before 100,001", n, err)
	}
}

func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestCyclesAndEndlessChainsEnd(t *testing.T) {
	name := func(n int) (id blob.ID) {
		binary.BigEndian.PutUint32(id[:], uint32(n+1))
		return id
	}
	for _, suffix := range []int64{0, 1} { // extensions are walked, others recursed into
		records := map[blob.ID][]byte{}
		const n = 200
		for i := range n {
			r := &record{kind: kindDelta, base: name((i + 1) % n), position: 1, prefix: 2, suffix: suffix, payload: []byte("x")}
			records[name(i)] = r.encode()
		}
		s := reopen(t, records, blob.ID{}, nil)
		if _, err := s.Get(t.Context(), name(0)); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("a cycle gave %v, want ErrCorrupt", err)
		}
		next := blob.New([]byte("aax and something of its own that is long enough to be worth a delta of the other one, or so it may seem"))
		next.Like = name(0)
		if err := s.Put(t.Context(), next); err != nil {
			t.Errorf("a hint at a cycle: %v", err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	records, _ := fixture(f)
	var base blob.ID
	for id, record := range records {
		if record[0] == kindZstd {
			base = id
		}
		f.Add(record[:min(len(record), 4096)])
	}
	id := blob.ID{1}
	codec := newCodec(2, 2<<20) // costly, and without state between calls
	f.Fuzz(func(t *testing.T, data []byte) {
		inner := memblob.New()
		if err := inner.Put(t.Context(), blob.Blob{ID: base, Data: records[base]}, blob.Blob{ID: id, Data: data}); err != nil {
			t.Fatal(err)
		}
		s := New(inner, &Options{MaxBlob: 2 << 20})
		s.codec = codec
		got, err := s.Get(t.Context(), id)
		if err != nil {
			if !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, blob.ErrTooLarge) {
				t.Fatalf("got %v, want ErrCorrupt or ErrTooLarge", err)
			}
			return
		}
		if r, err := parse(id, data, 2<<20); err != nil || int64(len(got)) != r.size {
			t.Fatalf("read %d bytes of a record that parses as %+v, %v", len(got), r, err)
		}
		if r, err := s.Open(t.Context(), id); err == nil {
			defer r.Close()
			// A frame with a larger window than ours is refused as a stream only.
			again, err := io.ReadAll(r)
			if err != nil && !errors.Is(err, blob.ErrCorrupt) || err == nil && !bytes.Equal(again, got) {
				t.Fatalf("streamed %d bytes, %v, got %d", len(again), err, len(got))
			}
		}
	})
}
