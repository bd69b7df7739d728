package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
)

func sampleEntries() []Entry {
	id := blob.Sum([]byte("x"))
	return []Entry{
		{Name: "a", Kind: File, Mode: 0o644, Size: 1 << 40, ID: id, Chunked: true},
		{Name: "b\xff", Kind: Dir, Mode: 0o7777, ID: id},
		{Name: "c", Kind: Symlink, Size: 12, ID: id},
	}
}

func TestNodeRoundTrip(t *testing.T) {
	for _, entries := range [][]Entry{nil, sampleEntries()} {
		data, err := EncodeNode(entries)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeNode(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(entries) {
			t.Fatalf("got %v, want %v", got, entries)
		}
		for i := range got {
			if got[i] != entries[i] {
				t.Errorf("entry %d = %+v, want %+v", i, got[i], entries[i])
			}
		}
	}
}

func TestLookupNameFindsWhatDecodingDoes(t *testing.T) {
	data, err := EncodeNode(sampleEntries())
	if err != nil {
		t.Fatal(err)
	}
	store := memblob.New()
	node := blob.New(data)
	if err := store.Put(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for _, want := range sampleEntries() {
		if got, err := LookupName(t.Context(), store, node.ID, want.Name); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", want.Name, got, err)
		}
	}
	for _, name := range []string{"", "A", "aa", "b", "d"} {
		if got, err := LookupName(t.Context(), store, node.ID, name); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrBadNode) {
			t.Errorf("%q: got %+v, %v", name, got, err)
		}
	}
	if _, err := LookupName(t.Context(), store, blob.ID{}, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in the empty directory: %v", err)
	}
	for n := range data {
		if e, err := findEntry(data[:n], "c"); !errors.Is(err, ErrBadNode) {
			t.Errorf("cut to %d bytes: got %+v, %v", n, e, err)
		}
	}
}

// The bytes are a promise: see docs/FORMAT.md.
func TestNodeBytes(t *testing.T) {
	id := blob.ID(bytes.Repeat([]byte{0xab}, 32))
	got, err := EncodeNode([]Entry{{Name: "d", Kind: Dir, Mode: 0o755, ID: id}, {Name: "fi", Kind: File, Mode: 0o644, Size: 300, ID: id}})
	if err != nil {
		t.Fatal(err)
	}
	want := "stWd\x01\x02" + "\x02\xed\x03\x01d" + string(id[:]) + "\x01\xa4\x03\x02fi\xac\x02" + string(id[:])
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNodeRules(t *testing.T) {
	id := blob.Sum(nil)
	file := func(name string) Entry { return Entry{Name: name, Kind: File, ID: id} }
	bad := map[string][]Entry{
		"order":        {file("b"), file("a")},
		"twice":        {file("a"), file("a")},
		"empty name":   {file("")},
		"dot":          {file(".")},
		"dot dot":      {file("..")},
		"slash":        {file("a/b")},
		"NUL":          {file("a\x00")},
		"long name":    {file(strings.Repeat("n", 256))},
		"kind":         {{Name: "a", Kind: 4, ID: id}},
		"mode":         {{Name: "a", Kind: File, Mode: 0o10000, ID: id}},
		"link mode":    {{Name: "a", Kind: Symlink, Mode: 0o777, ID: id}},
		"dir size":     {{Name: "a", Kind: Dir, Size: 1, ID: id}},
		"size":         {{Name: "a", Kind: File, Size: -1, ID: id}},
		"no id":        {{Name: "a", Kind: File}},
		"chunked link": {{Name: "a", Kind: Symlink, ID: id, Chunked: true}},
	}
	for what, entries := range bad {
		if _, err := EncodeNode(entries); !errors.Is(err, ErrBadNode) {
			t.Errorf("%s: %v, want ErrBadNode", what, err)
		}
	}
}

func TestNodeDecoderIsStrict(t *testing.T) {
	good, err := EncodeNode(sampleEntries())
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := DecodeNode(good[:n]); !errors.Is(err, ErrBadNode) {
			t.Errorf("first %d bytes: %v, want ErrBadNode", n, err)
		}
	}
	newer := bytes.Clone(good)
	newer[4] = 2
	long := append([]byte("stWd\x01\x80\x00"), good[6:]...)
	huge := []byte("stWd\x01\xff\xff\xff\xff\x0f")
	for what, data := range map[string][]byte{"trailing byte": append(bytes.Clone(good), 0), "newer version": newer, "long number": long, "huge count": huge, "empty": nil} {
		if _, err := DecodeNode(data); !errors.Is(err, ErrBadNode) {
			t.Errorf("%s: %v, want ErrBadNode", what, err)
		}
	}
}

func FuzzNode(f *testing.F) {
	good, err := EncodeNode(sampleEntries())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("stWd\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := DecodeNode(data)
		if err != nil {
			return
		}
		again, err := EncodeNode(entries)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("decoded and encoded again: %x, %v; want %x", again, err, data)
		}
	})
}

func FuzzChunks(f *testing.F) {
	good, err := encodeChunks([]Chunk{{Size: 5, ID: blob.Sum(nil)}, {Size: 1 << 40, ID: blob.Sum([]byte("x"))}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		chunks, err := DecodeChunks(data)
		if err != nil {
			return
		}
		again, err := encodeChunks(chunks)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("decoded and encoded again: %x, %v; want %x", again, err, data)
		}
	})
}

// A size that no content can have is refused: nobody makes room for it.
func TestImpossibleSizesAreRefused(t *testing.T) {
	id := blob.Sum([]byte("x"))
	for _, e := range []Entry{
		{Name: "whole", Kind: File, Mode: 0o644, Size: 1<<32 + 1, ID: id},
		{Name: "chunked", Kind: File, Mode: 0o644, Size: 1<<44 + 1, ID: id, Chunked: true},
		{Name: "huge", Kind: File, Mode: 0o644, Size: 1 << 50, ID: id},
	} {
		if _, err := EncodeNode([]Entry{e}); !errors.Is(err, ErrBadNode) {
			t.Errorf("encode %s: %v", e.Name, err)
		}
		data := append([]byte("stWd\x01\x01\x01\xa4\x03\x01f"), binary.AppendUvarint(nil, uint64(e.Size))...)
		if e.Chunked {
			data[6] |= chunkedBit
		}
		if _, err := DecodeNode(append(data, id[:]...)); !errors.Is(err, ErrBadNode) {
			t.Errorf("decode %s: %v", e.Name, err)
		}
	}
	list := append([]byte("stWc\x01\x01"), binary.AppendUvarint(nil, 1<<50)...)
	if _, err := DecodeChunks(append(list, id[:]...)); !errors.Is(err, ErrBadNode) {
		t.Errorf("decode chunks: %v", err)
	}
}
