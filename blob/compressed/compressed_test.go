package compressed_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
)

func open(*testing.T) blob.Store { return compressed.New(memblob.New(), nil) }

func openWithoutCache(*testing.T) blob.Store {
	return compressed.New(memblob.New(), &compressed.Options{CacheBytes: -1})
}

func TestConformance(t *testing.T) { blobtest.Run(t, open) }

func TestConformanceWithoutCache(t *testing.T) {
	blobtest.RunWith(t, openWithoutCache, &blobtest.Options{MaxBytes: 1 << 20})
}

func TestModel(t *testing.T) {
	t.Run("cache", func(t *testing.T) { blobtest.RunModel(t, open) })
	t.Run("no cache", func(t *testing.T) { blobtest.RunModel(t, openWithoutCache) })
}

// stored returns how many bytes the store below keeps in all.
func stored(t *testing.T, s blob.Lister) (n int64) {
	t.Helper()
	err := s.List(t.Context(), blob.ID{}, func(i blob.Info) error {
		n += i.Stored
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustPut(t *testing.T, s blob.Store, blobs ...blob.Blob) {
	t.Helper()
	if err := s.Put(t.Context(), blobs...); err != nil {
		t.Fatal(err)
	}
}

func wantContent(t *testing.T, s blob.Store, id blob.ID, want []byte) {
	t.Helper()
	got, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, want %d others", len(got), len(want))
	}
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	p := make([]byte, n)
	r.Read(p)
	return p
}

func text(seed uint64, words int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	for range words {
		fmt.Fprintf(&b, "word%d ", r.IntN(2000))
	}
	return b.Bytes()
}

func TestTextIsCompressedAndNoiseIsNot(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	mustPut(t, s, blob.New(text(1, 10_000)))
	if got, limit := stored(t, inner), int64(len(text(1, 10_000))*6/10); got > limit {
		t.Errorf("text takes %d bytes, want at most %d", got, limit)
	}
	before := stored(t, inner)
	mustPut(t, s, blob.New(randomBytes(1, 10_000)))
	if got := stored(t, inner) - before; got != 10_001 {
		t.Errorf("10,000 random bytes take %d, want 10,001", got)
	}
}

func TestStoringAgainCompressesNothingAndReachesTheStoreBelow(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	b := blob.New(text(1, 1000))
	mustPut(t, s, b)
	before := stored(t, inner)
	generation, err := inner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, b)
	if got := stored(t, inner); got != before {
		t.Errorf("storing again changed %d stored bytes to %d", before, got)
	}
	if _, err := inner.Sweep(t.Context(), generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }}); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, b.ID, b.Data)
}

func TestAnEditIsStoredAsItsDifference(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	content := text(1, 20_000)
	last := blob.New(content)
	mustPut(t, s, last)
	whole := stored(t, inner)
	for i := range 50 {
		content = bytes.Clone(content)
		copy(content[len(content)/2:], fmt.Sprintf("edit number %d", i))
		next := blob.New(content)
		next.Like = last.ID
		mustPut(t, s, next)
		wantContent(t, s, next.ID, content)
		last = next
	}
	if got := stored(t, inner) - whole; got > 50*200 {
		t.Errorf("50 edits of 14 bytes take %d bytes, want at most 200 each", got)
	}
}

// TestScatteredEditsUseTheBaseAsDictionary changes every hundredth word, so that
// neither a common start nor a common end helps.
func TestScatteredEditsUseTheBaseAsDictionary(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	words := bytes.Fields(randomHex(40_000))
	first := blob.New(bytes.Join(words, []byte(" ")))
	mustPut(t, s, first)
	whole := stored(t, inner)
	for i := 0; i < len(words); i += 100 {
		words[i] = []byte("changed")
	}
	second := blob.New(bytes.Join(words, []byte(" ")))
	second.Like = first.ID
	mustPut(t, s, second)
	if got := stored(t, inner) - whole; got > whole/10 {
		t.Errorf("the edit takes %d bytes, the whole %d", got, whole)
	}
	wantContent(t, s, second.ID, second.Data)
}

// randomHex returns words that compress badly without their predecessor.
func randomHex(n int) []byte {
	var b bytes.Buffer
	for i, c := range randomBytes(7, n) {
		if i%8 == 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%02x", c)
	}
	return b.Bytes()
}

func TestAHintThatDoesNotHelpIsNotFollowed(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	a, b := blob.New(randomBytes(1, 5000)), blob.New(randomBytes(2, 5000))
	b.Like = a.ID
	mustPut(t, s, a)
	mustPut(t, s, b)
	wantBase(t, inner, b.ID, blob.ID{})
}

func wantBase(t *testing.T, s blob.Lister, id, want blob.ID) {
	t.Helper()
	err := s.List(t.Context(), blob.ID{}, func(i blob.Info) error {
		if i.ID == id && i.Base != want {
			t.Errorf("%s has base %s, want %s", id, i.Base, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatRemotesSeeNeverLeansOnWhatTheyDoNot(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	content := randomBytes(1, 2000)
	local := blob.New(content)
	local.LocalOnly = true
	mustPut(t, s, local)

	hinted := blob.New(append(bytes.Clone(content), "more"...))
	hinted.Like = local.ID
	extended := blob.Blob{ID: blob.Sum(append(bytes.Clone(content), "extended"...)), Data: []byte("extended"), Like: local.ID, Keep: 2000}
	alsoLocal := blob.Blob{ID: blob.Sum(append(bytes.Clone(content), "also"...)), Data: []byte("also"), Like: local.ID, Keep: 2000, LocalOnly: true}
	mustPut(t, s, hinted, extended, alsoLocal)
	wantBase(t, inner, hinted.ID, blob.ID{})
	wantBase(t, inner, extended.ID, blob.ID{})
	wantBase(t, inner, alsoLocal.ID, local.ID)
	wantContent(t, s, extended.ID, append(bytes.Clone(content), "extended"...))
	wantContent(t, s, alsoLocal.ID, append(bytes.Clone(content), "also"...))
}

// TestRandomEdits builds trees of contents by edits of all sorts, hinted or
// extended, several in one Put, and reads everything back.
func TestRandomEdits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opts := &compressed.Options{CacheBytes: rapid.SampledFrom([]int64{-1, 0, 2000}).Draw(rt, "cache")}
		s := compressed.New(memblob.New(), opts)
		first := blob.New(text(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(0, 400).Draw(rt, "words")))
		contents, ids := map[blob.ID][]byte{first.ID: first.Data}, []blob.ID{first.ID}
		batch := []blob.Blob{first}
		for i := range rapid.IntRange(1, 40).Draw(rt, "edits") {
			like := ids[max(0, len(ids)-1-rapid.IntRange(0, 3).Draw(rt, "back"))]
			b, content := edit(rt, i, like, contents[like])
			contents[b.ID] = content
			ids, batch = append(ids, b.ID), append(batch, b)
			if rapid.Bool().Draw(rt, "put now") {
				mustPut(t, s, batch...)
				batch = nil
			}
		}
		mustPut(t, s, batch...)
		for id, want := range contents {
			wantContent(t, s, id, want)
		}
	})
}

func edit(t *rapid.T, n int, like blob.ID, old []byte) (blob.Blob, []byte) {
	insert := fmt.Appendf(nil, "<%d>%s", n, bytes.Repeat([]byte("x"), rapid.IntRange(0, 300).Draw(t, "insert")))
	from := rapid.IntRange(0, len(old)).Draw(t, "from")
	if rapid.Bool().Draw(t, "extend") && from > 0 {
		content := append(bytes.Clone(old[:from]), insert...)
		return blob.Blob{ID: blob.Sum(content), Data: insert, Like: like, Keep: int64(from)}, content
	}
	to := rapid.IntRange(from, len(old)).Draw(t, "to")
	content := bytes.Join([][]byte{old[:from], insert, old[to:]}, nil)
	b := blob.New(content)
	b.Like = like
	return b, content
}

func TestLargeContentsAreStreamed(t *testing.T) {
	for name, content := range map[string][]byte{
		"hex":    []byte(hex.EncodeToString(randomBytes(1, 4500<<10))), // more than a spool keeps in memory
		"zeros":  make([]byte, 20<<20),
		"noise":  randomBytes(1, 3<<20),
		"memory": text(2, 200_000),
	} {
		t.Run(name, func(t *testing.T) {
			inner := memblob.New()
			s := blob.Checked(compressed.New(inner, nil))
			id := blob.Sum(content)
			if err := blob.PutFrom(t.Context(), s, id, bytes.NewReader(content), int64(len(content))); err != nil {
				t.Fatal(err)
			}
			r, err := blob.Open(t.Context(), s, id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, content) {
				t.Error("other bytes came back")
			}
			wantContent(t, s, id, content)
			t.Logf("%d bytes stored as %d", len(content), stored(t, inner))
		})
	}
}

func TestTooLargeForMemoryIsRefusedByPutAndGetButStreams(t *testing.T) {
	opts := &compressed.Options{MaxBlob: 1 << 20}
	s := blob.Checked(compressed.New(memblob.New(), opts))
	b := blob.New(bytes.Repeat([]byte("0123456789abcde\n"), 1<<17))
	if err := s.Put(t.Context(), b); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("put gave %v, want ErrTooLarge", err)
	}
	if err := blob.PutFrom(t.Context(), s, b.ID, bytes.NewReader(b.Data), int64(len(b.Data))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("get gave %v, want ErrTooLarge", err)
	}
	r, err := blob.Open(t.Context(), s, b.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n != int64(len(b.Data)) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestAMissingBaseIsReportedWithBothNames(t *testing.T) {
	inner := blobtest.NewFaulty(memblob.New())
	s := compressed.New(inner, nil)
	builder := blob.NewBuilder()
	builder.Append(randomBytes(1, 1000))
	base := builder.Blob(nil)
	mustPut(t, s, base)
	builder.Commit(base)
	builder.Append([]byte("more"))
	next := builder.Blob(nil)
	mustPut(t, s, next)
	inner.FailWhen(func(c blobtest.Call) bool { return len(c.IDs) == 1 && c.IDs[0] == base.ID }, blob.NotFound(base.ID))
	_, err := s.Get(context.Background(), next.ID)
	if !errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrNotFound) {
		t.Fatalf("got %v, want ErrCorrupt and not ErrNotFound", err)
	}
	for _, id := range []blob.ID{base.ID, next.ID} {
		if !strings.Contains(err.Error(), id.String()) {
			t.Errorf("%v does not name %s", err, id)
		}
	}
}

func TestLayer(t *testing.T) {
	for name, opts := range map[string]*compressed.Options{"cache": nil, "no cache": {CacheBytes: -1}, "later": {Later: func(int64) {}}} {
		t.Run(name, func(t *testing.T) {
			blobtest.RunLayer(t, func(_ *testing.T, inner blob.Store) blob.Store { return compressed.New(inner, opts) })
		})
	}
}
