package compressed_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
)

// entry is an id in a repeated bytes field: a tag, a length, 32 random bytes.
func entry(n int) []byte {
	id := blob.Sum(binary.AppendUvarint(nil, uint64(n)))
	return append([]byte{1<<3 | 2, blob.IDSize}, id[:]...)
}

// grow stores a list of start entries and then appends one at a time.
func grow(t testing.TB, s blob.Store, start, appends int, each func(n int, b blob.Blob)) {
	t.Helper()
	list := blob.NewBuilder()
	for n := range start {
		list.Append(entry(n))
	}
	for n := 0; n <= appends; n++ {
		if n > 0 {
			list.Append(entry(start + n - 1))
		}
		b := list.Blob(fmt.Appendf(nil, "tail %d", n))
		if err := s.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		list.Commit(b)
		each(n, b)
	}
}

func TestAListOfTenThousandGrowsByOneForLessThan200Bytes(t *testing.T) {
	inner := memblob.New()
	var whole, first int64
	grow(t, blob.Checked(compressed.New(inner, nil)), 10_000, 1, func(n int, _ blob.Blob) {
		whole, first = first, stored(t, inner)
	})
	t.Logf("one more entry took %d bytes", first-whole)
	if got := first - whole; got >= 200 {
		t.Errorf("one more entry of 34 bytes took %d bytes", got)
	}
}

func TestAThousandAppendsStayBounded(t *testing.T) {
	inner := memblob.New()
	s := blob.Checked(compressed.New(inner, nil))
	var whole int64
	ids := make([]blob.ID, 0, 1001)
	grow(t, s, 10_000, 1000, func(n int, b blob.Blob) {
		if n == 0 {
			whole = stored(t, inner)
		}
		ids = append(ids, b.ID)
	})
	total := stored(t, inner) - whole
	t.Logf("1,000 appends to 10,000 entries took %d bytes, %d each", total, total/1000)
	if total > 1000*250 {
		t.Errorf("1,000 appends took %d bytes, want at most 250 each", total)
	}
	content := make([]byte, 0, 11_000*34)
	for n := range 11_000 {
		content = append(content, entry(n)...)
	}
	for n, id := range ids {
		if n%37 == 0 || n > 990 {
			wantContent(t, s, id, fmt.Appendf(content[:(10_000+n)*34:(10_000+n)*34], "tail %d", n))
		}
	}
}

func TestAChainIsReadInLogarithmicSteps(t *testing.T) {
	inner := blobtest.NewFaulty(memblob.New())
	var last blob.ID
	grow(t, compressed.New(inner, nil), 10, 1023, func(_ int, b blob.Blob) { last = b.ID })
	before := inner.Calls(blobtest.OpGet)
	if _, err := compressed.New(inner, nil).Get(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if got, limit := inner.Calls(blobtest.OpGet)-before, 1+3*5; got > limit {
		t.Errorf("a chain of 1,023 took %d reads, want at most %d", got, limit)
	}
}

func TestAppendingReadsTheFirstCopyOnce(t *testing.T) {
	inner := blobtest.NewFaulty(memblob.New())
	grow(t, compressed.New(inner, nil), 10, 500, func(int, blob.Blob) {})
	if got := inner.Calls(blobtest.OpGet); got > 1 {
		t.Errorf("500 appends read %d records, want one: the whole copy that they began with", got)
	}
	if got := inner.Calls(blobtest.OpHas); got > 501 {
		t.Errorf("501 puts asked %d times what is stored, want once each", got)
	}
}

// TestAppendingAfterRestart starts each append with an empty cache.
func TestAppendingAfterRestart(t *testing.T) {
	inner := memblob.New()
	list := blob.NewBuilder()
	var content []byte
	for n := range 200 {
		list.Append(entry(n))
		content = append(content, entry(n)...)
		b := list.Blob(nil)
		s := compressed.New(inner, nil)
		mustPut(t, s, b)
		list.Commit(b)
		wantContent(t, s, b.ID, content)
	}
}

// TestAnExtensionSurvivesTheSweepOfItsLike appends to a blob whose record is
// still cached although a collector has taken it.
func TestAnExtensionSurvivesTheSweepOfItsLike(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	list := blob.NewBuilder()
	list.Append(randomBytes(1, 500))
	first := list.Blob(nil)
	mustPut(t, s, first)
	list.Commit(first)
	generation, err := inner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Sweep(t.Context(), generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }}); err != nil {
		t.Fatal(err)
	}
	list.Append([]byte("more"))
	next := list.Blob(nil)
	if err := s.Put(t.Context(), next); err == nil {
		t.Error("an extension of a swept blob was accepted")
	}
	hinted := blob.New(append(randomBytes(1, 500), "hinted"...))
	hinted.Like = first.ID
	mustPut(t, s, hinted)
	wantContent(t, s, hinted.ID, hinted.Data)
}

func TestAContentThatComesBackIsNotItsOwnBase(t *testing.T) {
	inner := memblob.New()
	s := compressed.New(inner, nil)
	a := blob.New(randomBytes(1, 1000))
	longer := blob.Blob{ID: blob.Sum(append(randomBytes(1, 1000), 'x')), Data: []byte("x"), Like: a.ID, Keep: 1000}
	mustPut(t, s, a)
	mustPut(t, s, longer)
	mustPut(t, s, blob.Blob{ID: a.ID, Like: longer.ID, Keep: 1000})
	mustPut(t, s, blob.Blob{ID: a.ID, Like: a.ID, Keep: 1000})
	wantContent(t, s, a.ID, a.Data)
	wantBase(t, inner, a.ID, blob.ID{})
}

// TestEditingAgainReadsNothing edits one text many times, with a layer above that
// has the earlier versions at hand. Where nobody has, versions are read, and what
// is stored is the same.
func TestEditingAgainReadsNothing(t *testing.T) {
	edit := func(remember bool) (gets int, bytes int64) {
		inner := memblob.New()
		counting := blobtest.NewFaulty(inner)
		seen := map[blob.ID][]byte{}
		opts := &compressed.Options{Later: func(int64) {}}
		if remember {
			opts.Recall = func(id blob.ID) []byte { return seen[id] }
		}
		s := blob.Checked(compressed.New(counting, opts))
		var like blob.ID
		for n := range 100 {
			text := hundredLines(n)
			b := blob.New(text)
			b.Like = like
			if err := s.Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			seen[b.ID], like = text, b.ID
		}
		gets = counting.Calls(blobtest.OpGet)
		for id, text := range seen {
			wantContent(t, s, id, text)
		}
		return gets, stored(t, inner)
	}
	gets, small := edit(true)
	if gets > 1 { // the first version was put without asking in which form it is stored
		t.Errorf("100 edits read %d records, want one", gets)
	}
	if _, same := edit(false); small != same {
		t.Errorf("100 edits take %d bytes, and %d where versions are read", small, same)
	}
	if limit := int64(len(hundredLines(0)) * 10); small > limit {
		t.Errorf("100 edits take %d bytes, want at most %d", small, limit)
	}
}

// hundredLines is a text of which each version differs in one line.
func hundredLines(version int) (out []byte) {
	for line := range 100 {
		n := line
		if line == version%100 {
			n = 1000 + version
		}
		out = fmt.Appendf(out, "line %d of a text that somebody edits\n", n)
	}
	return out
}
