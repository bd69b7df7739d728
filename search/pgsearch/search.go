package pgsearch

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/internal/corpus"
)

const (
	defaultLimit, maxLimit = 20, 1000
	// maxRanked is how many matching messages are ranked, latest first, so that the
	// time for a very common word does not grow with the store.
	maxRanked = 5000
)

// Search implements search.Searcher.
func (ix *Index) Search(ctx context.Context, text string, opts *search.SearchOptions) (search.Page, error) {
	if opts == nil {
		opts = &search.SearchOptions{}
	}
	page, err := ix.search(ctx, parseQuery(text), opts)
	if err != nil {
		return search.Page{}, fmt.Errorf("search: %w", err)
	}
	return page, nil
}

func (ix *Index) search(ctx context.Context, q query, opts *search.SearchOptions) (search.Page, error) {
	var page search.Page
	if err := ix.check(ctx); err != nil {
		return page, err
	}
	if q.Empty() {
		return page, search.ErrEmptyQuery
	}
	after, err := parseCursor(opts.Cursor, q, opts)
	if err != nil || q.lost() {
		return page, err
	}
	limit := opts.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	f := &finder{Index: ix, q: q, opts: opts, limit: min(limit, maxLimit)}
	// One snapshot for all reads. The texts of hits are read afterwards.
	if err := f.rank(ctx, after); err != nil {
		return page, err
	}
	return f.page(ctx, after)
}

// finder answers one search.
type finder struct {
	*Index
	tx    *snapshot
	q     query
	opts  *search.SearchOptions
	limit int

	ranked []ranked           // in order
	convs  map[string]convRow // by their keys
}

// convRow is what hits show of a conversation.
type convRow struct {
	id, title string
	updated   int64
}

// found is a place in the order of hits: higher scores first, then newer messages.
type found struct {
	score float64
	num   int64
}

func (f found) before(other found) bool {
	return f.score > other.score || f.score == other.score && f.num > other.num
}

// ranked is a message with its place.
type ranked struct {
	found
	*doc
	conv []byte
}

// first is before all others.
var first = found{math.Inf(1), math.MaxInt64}

// rank finds the messages that match, and orders them. It also reads the conversations that
// the page after a place is likely to show.
func (f *finder) rank(ctx context.Context, after found) error {
	begin := &pgx.Batch{}
	var s state
	ok := false
	begin.Queue(f.db.sql(stateSQL), f.tenant).QueryRow(func(row pgx.Row) (err error) {
		s, ok, err = f.readState(row)
		return err
	})
	var words *firstRead
	if !f.q.listing() {
		words = f.queueWords(begin)
	}
	var err error
	if f.tx, err = f.snapshot(ctx, begin); err != nil {
		return err
	}
	defer f.tx.close(ctx)
	f.convs = make(map[string]convRow)
	off := ok && s.mode == Off
	switch {
	case !ok || off:
	case f.q.listing():
		err = f.list(ctx)
	default:
		err = f.match(ctx, s.salt, words)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(f.ranked, func(a, b ranked) int {
		switch {
		case a.found == b.found:
			return 0
		case a.before(b.found):
			return -1
		}
		return 1
	})
	shown := f.after(after)
	end := &pgx.Batch{}
	f.queueConvs(end, convsOf(shown[:min(len(shown), f.limit+1)]))
	if err := f.tx.end(ctx, end); err != nil {
		return err
	}
	if off {
		return ErrOff
	}
	return nil
}

// after returns the messages after a place.
func (f *finder) after(place found) []ranked {
	return f.ranked[sort.Search(len(f.ranked), func(i int) bool { return place.before(f.ranked[i].found) }):]
}

// wanted reports whether a message passes the filters.
func (f *finder) wanted(d *doc, c convRow) bool {
	if d.gone || d.save != 0 && !f.opts.Rewound || f.opts.Role != "" && d.role != f.opts.Role {
		return false
	}
	if !f.opts.Since.IsZero() && f.at(d, c) < max(1, f.opts.Since.UnixMilli()) {
		return false
	}
	if len(f.q.Roles) > 0 && !slices.Contains(f.q.Roles, string(d.role)) {
		return false
	}
	return len(f.q.Tools) == 0 || slices.Contains(corpus.ToolNames(f.q.Tools), strings.ToLower(d.tool))
}

func (f *finder) at(d *doc, c convRow) int64 {
	if d.time != 0 {
		return d.time
	}
	return c.updated
}

// page returns the hits after a place.
func (f *finder) page(ctx context.Context, after found) (search.Page, error) {
	var page search.Page
	rest := f.after(after)
	for len(rest) > 0 {
		// One more than the page needs shows whether there is another page.
		some := rest[:min(len(rest), f.limit+1-len(page.Hits))]
		rest = rest[len(some):]
		hits, err := f.hits(ctx, some)
		if err != nil {
			return page, err
		}
		for i, hit := range hits {
			if hit == nil {
				continue // another word with the same key
			}
			if len(page.Hits) == f.limit {
				return page, nil
			}
			page.Hits = append(page.Hits, *hit)
			page.Next = some[i].cursor(f.q, f.opts)
		}
	}
	page.Next = ""
	return page, nil
}

// A cursor is the checksum of the search, the score and the number.

func (f found) cursor(q query, opts *search.SearchOptions) string {
	b := binary.BigEndian.AppendUint32(nil, signature(q, opts))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(f.score))
	b = binary.BigEndian.AppendUint64(b, uint64(f.num))
	return base64.RawURLEncoding.EncodeToString(b)
}

func signature(q query, opts *search.SearchOptions) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "pg %q %q %q %q %q %d %v", q.text(), q.Tools, q.Roles, opts.Conversation, opts.Role, opts.Since.UnixMilli(), opts.Rewound)
	return h.Sum32()
}

func parseCursor(s string, q query, opts *search.SearchOptions) (found, error) {
	if s == "" {
		return first, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 20 || binary.BigEndian.Uint32(b) != signature(q, opts) {
		return found{}, search.ErrInvalidCursor
	}
	f := found{math.Float64frombits(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint64(b[12:]))}
	if math.IsNaN(f.score) {
		return found{}, search.ErrInvalidCursor
	}
	return f, nil
}
