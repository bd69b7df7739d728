package compressed

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/sqlite"
)

// bench is a driver that exchanges blobs, and what was put through stores above it.
type bench struct {
	t        testing.TB
	kept     *sqlite.Blobs
	reads    int // what fresh stores may read to compare
	contents map[blob.ID][]byte
	mark     string // how far blobs are compacted
}

func newBench(t testing.TB, reads int) *bench {
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
	return &bench{t: t, kept: db.Blobs(), reads: reads, contents: map[blob.ID][]byte{}}
}

// fresh is the store of a process that has just begun.
func (b *bench) fresh() *Store {
	s := New(b.kept, &Options{Later: func(int64) {}})
	s.reads = b.reads
	return s
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// version is a content, and what it was made from.
type version struct {
	content []byte
	like    blob.ID
	keep    int64 // of like
	local   bool
}

func (v version) blob() blob.Blob {
	b := blob.New(v.content)
	b.Like, b.LocalOnly = v.like, v.local
	if v.keep > 0 {
		b = blob.Blob{ID: b.ID, Data: v.content[v.keep:], Like: v.like, Keep: v.keep, LocalOnly: v.local}
	}
	return b
}

// put stores versions with one call of a process of its own, and returns their ids.
func (b *bench) put(versions ...version) []blob.ID {
	b.t.Helper()
	blobs, ids := make([]blob.Blob, len(versions)), make([]blob.ID, len(versions))
	for i, v := range versions {
		blobs[i] = v.blob()
		ids[i] = blobs[i].ID
		b.contents[ids[i]] = v.content
	}
	s := b.fresh()
	b.must(s.Put(b.t.Context(), blobs...))
	b.must(s.Flush(b.t.Context()))
	return ids
}

// compact works on what arrived, up to some pages of it.
func (b *bench) compact(ctx context.Context, s *Store, pages int) error {
	for range pages {
		infos, next, err := b.kept.Arrived(ctx, b.mark, 16)
		if err != nil || next == b.mark {
			return err
		}
		if _, err := s.Compact(ctx, s.inner.(blob.Replacer), infos); err != nil {
			return err
		}
		b.mark = next
	}
	return nil
}

// compactAll ends only if nothing arrives without end.
func (b *bench) compactAll() {
	b.t.Helper()
	const pages = 10_000
	b.must(b.compact(b.t.Context(), b.fresh(), pages))
	if infos, _, err := b.kept.Arrived(b.t.Context(), b.mark, 1); err != nil || len(infos) > 0 {
		b.t.Fatalf("after %d pages there are blobs to compact, %v", pages, err)
	}
}

func (b *bench) collect(live map[blob.ID]bool) {
	b.t.Helper()
	gen, err := b.kept.Begin(b.t.Context())
	b.must(err)
	_, err = b.kept.Sweep(b.t.Context(), gen, blob.SweepOptions{Live: func(id blob.ID) bool { return live[id] }})
	b.must(err)
	has, err := b.kept.Has(b.t.Context(), keys(b.contents)...)
	b.must(err)
	for i, id := range keys(b.contents) {
		if !has[i] {
			delete(b.contents, id)
		}
	}
}

func keys(m map[blob.ID][]byte) (ids []blob.ID) {
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, blob.ID.Compare)
	return ids
}

// state is what the driver holds.
type state struct {
	kinds map[blob.ID]byte
	bases map[blob.ID]blob.ID
	bytes int64
}

func (b *bench) look() state {
	b.t.Helper()
	st := state{kinds: map[blob.ID]byte{}, bases: map[blob.ID]blob.ID{}}
	b.must(b.kept.List(b.t.Context(), blob.ID{}, func(i blob.Info) error {
		one, err := b.kept.Kept(b.t.Context(), i.ID)
		if err != nil {
			return err
		}
		r, err := parse(i.ID, one.Data, 64<<20)
		if err != nil {
			return err
		}
		if r.base != one.Base {
			return fmt.Errorf("%s leans on %s and says %s", i.ID, one.Base, r.base)
		}
		st.kinds[i.ID], st.bases[i.ID] = r.kind, r.base
		st.bytes += i.Stored
		return nil
	}))
	return st
}

// steps is how many bases it takes to read a blob.
func (st state) steps(id blob.ID) (n int) {
	for ; n <= 2*maxSteps && !st.bases[id].IsZero(); n++ {
		id = st.bases[id]
	}
	return n
}

func (st state) count(kind byte) (n int) {
	for _, k := range st.kinds {
		if k == kind {
			n++
		}
	}
	return n
}

// check reads everything, and holds chains to their lengths.
func (b *bench) check() state {
	b.t.Helper()
	st := b.look()
	s := blob.Checked(b.fresh())
	for id, want := range b.contents {
		if got, err := s.Get(b.t.Context(), id); err != nil || !bytes.Equal(got, want) {
			b.t.Fatalf("%d bytes instead of %d, %v", len(got), len(want), err)
		}
		if n := st.steps(id); n > 30 {
			b.t.Fatalf("%s takes %d steps", id, n)
		}
	}
	return st
}

func paragraph(rng *rand.Rand, words int) (out []byte) {
	for range words {
		out = fmt.Appendf(out, "word%d ", rng.IntN(5000))
	}
	return out
}

func edited(rng *rand.Rand, content []byte) []byte {
	at := rng.IntN(len(content) + 1)
	end := min(len(content), at+rng.IntN(40))
	return slices.Concat(content[:at], paragraph(rng, 1+rng.IntN(5)), content[end:])
}

// TestOfManyEditsMostArePutOff puts a hundred with one call, after a hundred
// contents that they are like.
func TestOfManyEditsMostArePutOff(t *testing.T) {
	b := newBench(t, nearReads)
	rng := rand.New(rand.NewPCG(1, 1))
	var first, second, third []version
	add := func(content []byte) { first = append(first, version{content: content}) }
	for range 100 {
		add(paragraph(rng, 300))
	}
	add([]byte("too short to be worth a base"))
	add(paragraph(rng, 20_000)) // which costs more to write than to compare
	ids := b.put(first...)
	for i, v := range first {
		second = append(second, version{content: edited(rng, v.content), like: ids[i]})
	}
	ids = b.put(second...)
	st := b.check()
	want := map[byte]int{kindDelta: nearReads + 1, kindHinted: 100 - nearReads}
	for kind, n := range want {
		if got := st.count(kind); got != n {
			t.Errorf("%d records of kind %d, want %d", got, kind, n)
		}
	}
	for i, v := range second {
		third = append(third, version{content: edited(rng, v.content), like: ids[i]})
	}
	last := b.put(third...)
	st = b.check()
	for i := range third {
		if st.kinds[ids[i]] == kindHinted && st.kinds[last[i]] != kindHinted {
			t.Errorf("what is like a record that waits is of kind %d", st.kinds[last[i]])
		}
	}
	b.compactAll()
	st = b.check()
	for i := range third {
		if i != 100 && !(st.bases[last[i]] == ids[i] && !st.bases[ids[i]].IsZero()) {
			t.Errorf("%d: compacted, %s leans on %s and that on %s", i, last[i], st.bases[last[i]], st.bases[ids[i]])
		}
	}
	if n := st.count(kindHinted); n > 0 {
		t.Errorf("%d records wait", n)
	}
}

// TestRecallIsNearWhateverWasRead compares with what the layer above has in memory.
func TestRecallIsNearWhateverWasRead(t *testing.T) {
	b := newBench(t, 0)
	rng := rand.New(rand.NewPCG(2, 2))
	s := New(b.kept, &Options{Later: func(int64) {}, Recall: func(id blob.ID) []byte { return b.contents[id] }})
	s.reads = 0
	content := paragraph(rng, 300)
	like := b.put(version{content: content})[0]
	if _, err := s.Get(t.Context(), like); err != nil { // so that it is known what it is
		t.Fatal(err)
	}
	for range 10 {
		content = edited(rng, content)
		one := version{content: content, like: like}.blob()
		b.must(s.Put(t.Context(), one))
		b.contents[one.ID], like = content, one.ID
	}
	if st := b.check(); st.count(kindDelta) != 10 {
		t.Errorf("%d of 10 edits are differences", st.count(kindDelta))
	}
}

// TestReadingVersionsInTheirOrderReadsEachOnce counts the records that are read below for the
// versions of a file, each of which is a difference to one before it.
func TestReadingVersionsInTheirOrderReadsEachOnce(t *testing.T) {
	b := newBench(t, 0)
	rng := rand.New(rand.NewPCG(4, 4))
	content := paragraph(rng, 300)
	ids := b.put(version{content: content})
	for range 40 {
		content = edited(rng, content)
		ids = append(ids, b.put(version{content: content, like: ids[len(ids)-1]})...)
	}
	b.compactAll()
	if st := b.check(); len(st.bases) < 40 {
		t.Fatalf("%d versions lean on others", len(st.bases))
	}
	memory := make(map[blob.ID][]byte)
	below := &countingReads{Store: b.kept}
	s := New(below, &Options{Recall: func(id blob.ID) []byte { return memory[id] }})
	for _, id := range ids {
		data, err := s.Get(t.Context(), id)
		if err != nil || blob.Sum(data) != id {
			t.Fatalf("%s: %v", id, err)
		}
		memory[id] = data
	}
	if below.reads != len(ids) {
		t.Errorf("%d reads for %d versions", below.reads, len(ids))
	}
	for id, data := range memory { // what is in memory was not changed
		if blob.Sum(data) != id {
			t.Errorf("%s was changed in memory", id)
		}
	}
}

// countingReads counts the reads of a store.
type countingReads struct {
	blob.Store
	reads int
}

func (c *countingReads) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	c.reads++
	return c.Store.Get(ctx, id)
}

// TestWhatAHintIsWorthInTheEnd compacts hints of every sort.
func TestWhatAHintIsWorthInTheEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	content := paragraph(rng, 400)
	edit := edited(rng, content)
	id := blob.Sum(edit)
	for name, test := range map[string]struct {
		like  func(b *bench) blob.ID
		local bool
		leans bool
	}{
		"good":       {like: func(b *bench) blob.ID { return b.put(version{content: content})[0] }, leans: true},
		"both local": {like: func(b *bench) blob.ID { return b.put(version{content: content, local: true})[0] }, local: true, leans: true},
		"local only": {like: func(b *bench) blob.ID { return b.put(version{content: content, local: true})[0] }},
		"missing":    {like: func(*bench) blob.ID { return blob.Sum(content) }},
		"not alike":  {like: func(b *bench) blob.ID { return b.put(version{content: paragraph(rng, 400)})[0] }},
		"damaged": {like: func(b *bench) blob.ID {
			b.must(b.kept.Put(b.t.Context(), blob.Blob{ID: blob.Sum(content), Data: []byte{99, 1, 2, 3}}))
			return blob.Sum(content)
		}},
		"undecided": {like: func(b *bench) blob.ID { // both at each other, and the other one comes later
			r := &record{kind: kindHinted, like: id, payload: content}
			b.must(b.kept.Put(b.t.Context(), blob.Blob{ID: blob.Sum(content), Data: r.encode()}))
			return blob.Sum(content)
		}},
		"leaning on it": {like: func(b *bench) blob.ID {
			like := blob.Sum(content)
			self := &record{kind: kindHinted, like: like, payload: edit}
			back := &record{kind: kindDelta, base: id, position: 1, payload: content}
			b.must(b.kept.Put(b.t.Context(), blob.Blob{ID: id, Data: self.encode()}, blob.Blob{ID: like, Data: back.encode(), Base: id}))
			return like
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 0)
			v := version{content: edit, like: test.like(b), local: test.local}
			b.put(v)
			if one, err := b.kept.Kept(t.Context(), id); err != nil || one.Data[0]&^flagLocal != kindHinted {
				t.Fatalf("before: kind %d, %v", one.Data[0], err)
			}
			var infos []blob.Info
			b.must(b.kept.List(t.Context(), blob.ID{}, func(i blob.Info) error {
				if i.ID == id {
					infos = append(infos, i)
				}
				return nil
			}))
			if _, err := b.fresh().Compact(t.Context(), b.kept, infos); err != nil {
				t.Fatal(err)
			}
			one, err := b.kept.Kept(t.Context(), id)
			b.must(err)
			r, err := parse(id, one.Data, 1<<20)
			b.must(err)
			if r.isDelta() != test.leans || !one.Base.IsZero() != test.leans || r.kind == kindHinted || r.local != test.local {
				t.Errorf("compacted as kind %d on %s, local %t", r.kind, one.Base, r.local)
			}
			if got, err := b.fresh().Get(t.Context(), id); err != nil || !bytes.Equal(got, edit) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// interrupted does something before each exchange.
type interrupted struct {
	*sqlite.Blobs
	before func(blobs []blob.Blob)
}

func (i *interrupted) Replace(ctx context.Context, blobs ...blob.Blob) error {
	i.before(blobs)
	return i.Blobs.Replace(ctx, blobs...)
}

// TestABaseThatGoesBeforeTheExchange is what a collector can do to Compact.
func TestABaseThatGoesBeforeTheExchange(t *testing.T) {
	b := newBench(t, 0)
	rng := rand.New(rand.NewPCG(4, 4))
	first := version{content: paragraph(rng, 400)}
	like := b.put(first)[0]
	second := version{content: edited(rng, first.content), like: like}
	third := version{content: edited(rng, second.content), like: blob.Sum(second.content)}
	ids := b.put(second, third)
	rounds := 0
	below := &interrupted{b.kept, func([]blob.Blob) {
		if rounds++; rounds == 1 {
			b.collect(map[blob.ID]bool{ids[0]: true, ids[1]: true})
		}
	}}
	infos, _, err := b.kept.Arrived(t.Context(), "", 10)
	b.must(err)
	if _, err := New(below, &Options{Later: func(int64) {}}).Compact(t.Context(), below, infos[1:]); err != nil {
		t.Fatal(err)
	}
	if has, err := b.kept.Has(t.Context(), like); err != nil || has[0] {
		t.Fatalf("the collector took nothing: %v, %v", has, err)
	}
	if st := b.check(); st.count(kindHinted) > 0 || !st.bases[ids[0]].IsZero() {
		t.Errorf("kinds %v, bases %v", st.kinds, st.bases)
	}
}

func TestAnExtensionOfWhatWaitsStandsAlone(t *testing.T) {
	b := newBench(t, 0)
	rng := rand.New(rand.NewPCG(5, 5))
	first := version{content: paragraph(rng, 400)}
	second := version{content: edited(rng, first.content), like: b.put(first)[0]}
	waits := b.put(second)[0]
	longer := version{content: slices.Concat(second.content, paragraph(rng, 20)), like: waits, keep: int64(len(second.content))}
	id := b.put(longer)[0]
	st := b.check()
	if st.kinds[waits] != kindHinted || st.kinds[id] != kindRaw {
		t.Errorf("kinds %d and %d", st.kinds[waits], st.kinds[id])
	}
	b.compactAll()
	b.check()
}

// TestALargeContentThatWaits grows from a small one that waits too.
func TestALargeContentThatWaits(t *testing.T) {
	b := newBench(t, 0)
	rng := rand.New(rand.NewPCG(9, 9))
	first := version{content: paragraph(rng, 400)}
	second := version{content: edited(rng, first.content), like: b.put(first)[0]}
	third := version{content: slices.Concat(second.content, paragraph(rng, 300_000)), like: b.put(second)[0]}
	fourth := version{content: edited(rng, third.content), like: b.put(third)[0]}
	id := b.put(fourth)[0]
	st := b.check()
	for _, waits := range []blob.ID{third.like, fourth.like, id} {
		if st.kinds[waits] != kindHinted {
			t.Errorf("before, a kind is %d", st.kinds[waits])
		}
	}
	if len(third.content) <= streamFrom {
		t.Fatalf("%d bytes are not many", len(third.content))
	}
	b.compactAll()
	if st := b.check(); st.count(kindHinted) > 0 || st.bases[id] != fourth.like {
		t.Errorf("compacted, the last is of kind %d, %d wait", st.kinds[id], st.count(kindHinted))
	}
}
