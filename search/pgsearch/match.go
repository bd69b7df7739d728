package pgsearch

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/jackc/pgx/v5"
)

// firstSegments is how many segments are read together at first. A frequent word is found
// often enough in them.
var firstSegments = 8

// firstRead is what the first round trip of a search reads of its words. The keys of words need
// the tenant's salt, so it supposes that the salt is the one that was last read.
type firstRead struct {
	segments []segment
	salt     []byte
	entries  map[int64][]entry // of the last firstSegments segments
}

// queueWords queues the statements that read the segments and what the latest ones have of
// the words.
func (f *finder) queueWords(b *pgx.Batch) *firstRead {
	w := &firstRead{}
	b.Queue(f.db.sql(segmentsSQL), f.tenant).Query(func(rows pgx.Rows) (err error) {
		w.segments, err = readSegments(rows)
		return err
	})
	if salt := f.lastSalt.Load(); salt != nil {
		w.salt = *salt
		want := f.keys(w.salt)
		low, high := bounds(want)
		b.Queue(f.db.sql(latestEntriesSQL), f.tenant, firstSegments, low, high).Query(func(rows pgx.Rows) (err error) {
			w.entries, err = readEntries(rows, want)
			return err
		})
	}
	return w
}

// keys returns the keys of the words of the query, phrase by phrase.
func (f *finder) keys(salt []byte) (want []keys) {
	for _, p := range f.q.phrases {
		for i, word := range p.words {
			want = append(want, keysOf(salt, word, p.prefix && i == len(p.words)-1))
		}
	}
	return want
}

// bounds returns the ends of ranges of keys, as statements take them.
func bounds(want []keys) (low, high [][]byte) {
	low, high = make([][]byte, len(want)), make([][]byte, len(want))
	for i := range want {
		low[i], high[i] = want[i].low.slice(), want[i].high.slice()
	}
	return low, high
}

// match finds messages by their words. Segments are read latest first, and no more once
// enough messages were found.
func (f *finder) match(ctx context.Context, salt []byte, first *firstRead) error {
	if !bytes.Equal(salt, first.salt) {
		first.entries = nil
	}
	want := f.keys(salt)
	segments, entries := first.segments, first.entries
	for end, n := len(segments), firstSegments; end > 0 && len(f.ranked) < maxRanked; n *= 4 {
		some := segments[max(0, end-n):end]
		end -= len(some)
		if entries == nil {
			var err error
			if entries, err = f.entries(ctx, some, want); err != nil {
				return err
			}
		}
		for i := len(some) - 1; i >= 0 && len(f.ranked) < maxRanked; i-- {
			matches, err := f.matches(some[i], entries[some[i].seg], want)
			if err != nil {
				return err
			}
			if err := f.admit(ctx, matches); err != nil {
				return err
			}
		}
		entries = nil
	}
	return nil
}

// entriesSQL returns the blocks that can have keys of a range, for each range and
// segment: those that begin within it, and the one before.
const (
	entriesSQL       = entriesOf + `unnest($2::bigint[]) AS s (seg)` + entriesIn
	latestEntriesSQL = entriesOf + `(SELECT seg FROM @segment WHERE tenant = $1 ORDER BY start DESC, seg DESC LIMIT $2) AS s` + entriesIn

	entriesOf = `SELECT b.seg, b.data FROM (
	SELECT DISTINCT s.seg, x.first, x.block FROM `
	entriesIn = `, unnest($3::bytea[], $4::bytea[]) AS r (low, high),
	LATERAL (
		(SELECT first, block FROM @block WHERE tenant = $1 AND seg = s.seg AND first < r.low ORDER BY first DESC, block DESC LIMIT 1)
		UNION ALL
		(SELECT first, block FROM @block WHERE tenant = $1 AND seg = s.seg AND first >= r.low AND first <= r.high)) AS x) AS w
	JOIN @block b ON b.tenant = $1 AND b.seg = w.seg AND b.first = w.first AND b.block = w.block ORDER BY b.seg, b.first, b.block`
)

// entries reads the lists of the wanted words.
func (f *finder) entries(ctx context.Context, some []segment, want []keys) (map[int64][]entry, error) {
	segs := make([]int64, len(some))
	for i, s := range some {
		segs[i] = s.seg
	}
	low, high := bounds(want)
	rows, err := f.tx.Query(ctx, f.db.sql(entriesSQL), f.tenant, segs, low, high)
	if err != nil {
		return nil, err
	}
	return readEntries(rows, want)
}

func readEntries(rows pgx.Rows, want []keys) (map[int64][]entry, error) {
	all := make(map[int64][]entry)
	var seg int64
	var data []byte
	_, err := pgx.ForEachRow(rows, []any{&seg, &data}, func() error {
		entries, err := decodeBlock(data)
		for _, e := range entries {
			if slices.ContainsFunc(want, func(r keys) bool { return r.has(e.key) }) {
				all[seg] = append(all[seg], e)
			}
		}
		return err
	})
	return all, err
}

// matched is how a message matches.
type matched struct {
	doc   int64
	often []float64 // how often each phrase occurs
}

// hitlist is the places of a word, or of all words of a beginning, by message.
type hitlist struct {
	docs   []int64
	places []places
}

// gather returns the messages that have a word.
func gather(s segment, entries []entry, want keys) (*hitlist, error) {
	h := &hitlist{}
	lists := 0
	var arena []uint32 // of places, so that each message does not need its own
	keep := func(list []uint32) []uint32 {
		if len(list) == 0 {
			return nil
		}
		if cap(arena)-len(arena) < len(list) {
			arena = make([]uint32, 0, max(8192, len(list)))
		}
		from := len(arena)
		arena = append(arena, list...)
		return arena[from:len(arena):len(arena)]
	}
	var last wordKey
	for _, e := range entries {
		if !want.has(e.key) {
			continue
		}
		if lists == 0 || e.key != last {
			lists, last = lists+1, e.key
		}
		err := decodeList(e.data, s.start, func(p posting) {
			p.body, p.path = keep(p.body), keep(p.path)
			h.docs, h.places = append(h.docs, p.doc), append(h.places, p.places)
		})
		if err != nil {
			return nil, err
		}
	}
	if lists > 1 {
		h.unite()
	}
	return h, nil
}

// unite orders the messages of several words, and joins their places.
func (h *hitlist) unite() {
	sort.Sort(h)
	n := 0
	for i := range h.docs {
		if n > 0 && h.docs[n-1] == h.docs[i] {
			p := &h.places[n-1]
			p.body, p.path = append(p.body, h.places[i].body...), append(p.path, h.places[i].path...)
			slices.Sort(p.body)
			continue
		}
		h.docs[n], h.places[n] = h.docs[i], h.places[i]
		n++
	}
	h.docs, h.places = h.docs[:n], h.places[:n]
}

func (h *hitlist) Len() int           { return len(h.docs) }
func (h *hitlist) Less(i, j int) bool { return h.docs[i] < h.docs[j] }
func (h *hitlist) Swap(i, j int) {
	h.docs[i], h.docs[j] = h.docs[j], h.docs[i]
	h.places[i], h.places[j] = h.places[j], h.places[i]
}

// matches returns the messages of a segment that have all phrases, latest first.
func (f *finder) matches(s segment, entries []entry, want []keys) ([]matched, error) {
	words := make([]*hitlist, len(want))
	for i := range want {
		var err error
		if words[i], err = gather(s, entries, want[i]); err != nil || len(words[i].docs) == 0 {
			return nil, err
		}
	}
	shortest := slices.MinFunc(words, func(a, b *hitlist) int { return len(a.docs) - len(b.docs) })
	at := make([]int, len(words))
	for i := range words {
		at[i] = len(words[i].docs)
	}
	where := make([]places, len(words))
	var out []matched
next:
	for i := len(shortest.docs) - 1; i >= 0; i-- {
		doc := shortest.docs[i]
		for w, h := range words {
			at[w] = sort.Search(at[w], func(k int) bool { return h.docs[k] > doc })
			if at[w] == 0 || h.docs[at[w]-1] != doc {
				continue next
			}
			where[w] = h.places[at[w]-1]
		}
		m := matched{doc: doc}
		first := 0
		for _, p := range f.q.phrases {
			often := p.often(where[first : first+len(p.words)])
			if often == 0 {
				continue next
			}
			m.often, first = append(m.often, often), first+len(p.words)
		}
		out = append(out, m)
	}
	return out, nil
}

// often returns how often a phrase seems to occur, by the places of its words. Paths
// count double. It is never 0 where not all places are known.
func (p phrase) often(words []places) (n float64) {
	whole := true
	for _, w := range words {
		whole = whole && len(w.body) < maxPlaces && len(w.path) < maxPlaces
	}
	for _, at := range words[0].path {
		if follow(words, at, 0xff, func(w places) []uint32 { return w.path }) {
			n += 2
		}
	}
	if !p.path {
		mask := uint32(0xff)
		if words[0].wide {
			mask = 1<<32 - 1
		}
		for _, at := range words[0].body {
			if follow(words, at, mask, func(w places) []uint32 { return w.body }) {
				n++
			}
		}
	}
	if n == 0 && !whole {
		return 1
	}
	return n
}

// follow reports whether the other words follow the first one.
func follow(words []places, at, mask uint32, in func(places) []uint32) bool {
	for i, w := range words[1:] {
		next := (at + uint32(i) + 1) & mask
		found := false
		if mask == 0xff {
			found = slices.Contains(in(w), next)
		} else {
			_, found = slices.BinarySearch(in(w), next)
		}
		if !found {
			return false
		}
	}
	return true
}
