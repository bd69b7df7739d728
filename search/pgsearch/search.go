package pgsearch

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/internal/corpus"
	"github.com/stet-dev/stet/transcript"
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
	// One snapshot for all reads.
	err = pgx.BeginTxFunc(ctx, ix.db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		f.tx = tx
		page, err = f.page(ctx, after)
		return err
	})
	return page, err
}

// finder answers one search.
type finder struct {
	*Index
	tx    pgx.Tx
	q     query
	opts  *search.SearchOptions
	limit int
}

// found is a place in the order of hits: higher scores first, then newer messages.
type found struct {
	score float64
	num   int64
}

// first is before all others.
var first = found{math.Inf(1), math.MaxInt64}

func (f *finder) page(ctx context.Context, after found) (search.Page, error) {
	var page search.Page
	best, err := f.best(ctx, after)
	if err != nil {
		return page, err
	}
	if len(best) > f.limit {
		best = best[:f.limit]
		page.Next = best[f.limit-1].cursor(f.q, f.opts)
	}
	hits, err := f.hits(ctx, best)
	if err != nil {
		return page, err
	}
	for _, place := range best {
		hit := hits[place.num]
		hit.Score = place.score
		page.Hits = append(page.Hits, hit)
	}
	return page, nil
}

// best returns one place more than the page size. Messages with incomplete word
// positions in the database are read and checked, so the first result may be smaller
// than requested.
func (f *finder) best(ctx context.Context, after found) ([]found, error) {
	var best []found
	for {
		ranked, err := f.rank(ctx, after)
		if err != nil {
			return nil, err
		}
		for _, r := range ranked {
			after = r.found
			if r.doubtful {
				holds, err := f.verify(ctx, r.num)
				if err != nil {
					return nil, err
				}
				if !holds {
					continue
				}
			}
			if best = append(best, r.found); len(best) > f.limit {
				return best, nil
			}
		}
		if len(ranked) <= f.limit {
			return best, nil
		}
	}
}

func (f *finder) verify(ctx context.Context, num int64) (bool, error) {
	var body, path []byte
	err := f.tx.QueryRow(ctx, f.db.sql("SELECT body, path FROM @doc WHERE tenant = $1 AND num = $2"), f.tenant, num).Scan(&body, &path)
	return err == nil && f.q.holds(string(body), string(path)), err
}

// filterSQL narrows messages d of conversations c.
const filterSQL = ` JOIN @conv c ON c.tenant = d.tenant AND c.conv = d.conv
	WHERE d.tenant = $1 AND ($2 OR d.save = 0) AND ($3::bytea IS NULL OR d.conv = $3) AND ($4 = '' OR d.role = $4)
	AND ($5::bigint = 0 OR CASE d.time WHEN 0 THEN c.updated ELSE d.time END >= $5)
	AND ($6::bytea[] IS NULL OR d.tool_key = ANY($6)) AND ($7::text[] IS NULL OR d.role = ANY($7))`

const orderSQL = ` WHERE score < $8 OR (score = $8 AND num < $9) ORDER BY score DESC, num DESC LIMIT $10`

// Matches are looked up by the words alone, which contain the tenant. Without
// statistics, as for a new tenant, the database would read all messages of the tenant
// (363 ms for a rare word in 10,000 messages instead of 7). $11 is the query.
const (
	wordSQL = `WITH matches AS MATERIALIZED (
		SELECT tenant, num, conv, save, role, time, tool_key FROM @doc WHERE words @@ $11::text::tsquery)` + rankSQL + `false` + rankedSQL
	// For phrases, $13 are the words.
	phraseSQL = `WITH matches AS MATERIALIZED (
		SELECT tenant, num, conv, save, role, time, tool_key FROM @doc
		WHERE words @@ $11::text::tsquery OR (words @@ $13::text::tsquery AND NOT exact))` + rankSQL + `NOT d.exact` + rankedSQL

	rankSQL = `, newest AS MATERIALIZED (SELECT d.num FROM matches d` + filterSQL + ` ORDER BY d.num DESC LIMIT $12),
		ranked AS MATERIALIZED (
			SELECT d.num, ts_rank('{0.5, 0.5, 0.5, 1.0}', d.words, $11::text::tsquery, 1)::double precision * d.weight AS score, `
	rankedSQL = ` AS doubtful FROM newest JOIN @doc d ON d.tenant = $1 AND d.num = newest.num)
		SELECT num, score, doubtful FROM ranked` + orderSQL
)

// Without words, the newest come first.
const listSQL = `SELECT num, score, false FROM (
	SELECT d.num, (CASE d.time WHEN 0 THEN c.updated ELSE d.time END)::double precision AS score FROM @doc d` + filterSQL + `) AS listed` + orderSQL

// place is a place in the order. It is doubtful if the phrases must still be checked.
type place struct {
	found
	doubtful bool
}

func (f *finder) rank(ctx context.Context, after found) ([]place, error) {
	var since int64
	if !f.opts.Since.IsZero() {
		since = max(1, f.opts.Since.UnixMilli())
	}
	var conv []byte
	if f.opts.Conversation != "" {
		conv = key(f.opts.Conversation)
	}
	var tools [][]byte
	for _, name := range corpus.ToolNames(f.q.Tools) {
		tools = append(tools, []byte(name))
	}
	args := []any{f.tenant, f.opts.Rewound, conv, clean(string(f.opts.Role)), since, tools, cleanAll(f.q.Roles), after.score, after.num, f.limit + 1}
	sql := listSQL
	if !f.q.listing() {
		strict, loose := f.q.strict(f.scope), f.q.loose(f.scope)
		sql, args = wordSQL, append(args, strict, maxRanked)
		if strict != loose {
			sql, args = phraseSQL, append(args, loose)
		}
	}
	rows, err := f.tx.Query(ctx, f.db.sql(sql), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (place, error) {
		var p place
		err := row.Scan(&p.num, &p.score, &p.doubtful)
		return p, err
	})
}

func cleanAll(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, clean(t))
	}
	return out
}

const hitSQL = `SELECT d.num, c.id, c.title, d.turn, d.message, d.role, d.kind, d.tool, d.subagent,
	CASE d.time WHEN 0 THEN c.updated ELSE d.time END, d.save, d.body, d.path
	FROM @doc d JOIN @conv c ON c.tenant = d.tenant AND c.conv = d.conv WHERE d.tenant = $1 AND d.num = ANY($2)`

// hits reads the shown parts of messages, one at a time: their texts can be large.
func (f *finder) hits(ctx context.Context, best []found) (map[int64]search.Hit, error) {
	nums := make([]int64, len(best))
	for i, b := range best {
		nums[i] = b.num
	}
	rows, err := f.tx.Query(ctx, f.db.sql(hitSQL), f.tenant, nums)
	if err != nil {
		return nil, err
	}
	hits := make(map[int64]search.Hit, len(best))
	var num, at, save int64
	var h search.Hit
	var id, title, message, tool, subagent, body, path []byte
	var role, kind string
	_, err = pgx.ForEachRow(rows, []any{&num, &id, &title, &h.Turn, &message, &role, &kind, &tool, &subagent, &at, &save, &body, &path}, func() error {
		h.Conversation, h.Title, h.MessageID = string(id), string(title), string(message)
		h.Role, h.Kind, h.Tool, h.Subagent = transcript.Role(role), transcript.Kind(kind), string(tool), string(subagent)
		h.Time, h.Save, h.Snippet = time.UnixMilli(at), uint64(save), f.q.snippet(string(body), string(path))
		hits[num] = h
		return nil
	})
	return hits, err
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
	fmt.Fprintf(h, "pg %q %q %q %q %q %d %v", q.strict(""), q.Tools, q.Roles, opts.Conversation, opts.Role, opts.Since.UnixMilli(), opts.Rewound)
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
