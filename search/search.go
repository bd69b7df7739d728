package search

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/search/internal/corpus"
	"github.com/stet-dev/stet/transcript"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrEmptyQuery says that a query has nothing to search for.
	ErrEmptyQuery = fault.Named(fault.Invalid, "empty-query", "the query has no words")
	// ErrInvalidCursor says that a cursor does not belong to this query.
	ErrInvalidCursor = fault.Named(fault.Invalid, "invalid-cursor", "the cursor does not belong to this search")
)

// SearchOptions narrow a search; nil gives the first page of everything.
type SearchOptions struct {
	// Limit is the maximum number of hits per page, 20 by default and 1,000 at most.
	Limit int
	// Cursor is where the page begins: empty, or Next of the previous page.
	Cursor string
	// Conversation, if set, is the only one searched.
	Conversation string
	// Rewound also searches branches left behind by rewinds. Their hits have a Save.
	Rewound bool
	// Role, if set, limits the search to messages of this role.
	Role transcript.Role
	// Since, if set, skips older messages. A message without a time has that of the
	// last save of its conversation.
	Since time.Time
}

// Hit is a found message.
type Hit struct {
	Conversation string
	Title        string
	// Turn, MessageID, Role, Kind and Subagent are those of the message. The Kind
	// of a title is "title".
	Turn      int
	MessageID string
	Role      transcript.Role
	Kind      transcript.Kind
	Tool      string
	Subagent  string
	// Save is, for a message that is not in the current state, the last save of the
	// branch that has it; 0 for all others.
	Save uint64
	// Snippet is the text around the match, safe to show on a terminal.
	Snippet Snippet
	// Score is higher for better hits of one search; it has no other meaning.
	Score float64
	// Time is the time of the message or, if it has none, of the last save.
	Time time.Time
}

// Page is a part of the hits, best first.
type Page struct {
	Hits []Hit
	// Next is the cursor of the following page, empty at the end.
	Next string
}

// Search returns the messages that match a query, as described in the package comment. It
// sees the state of the last Update. A damaged index is rebuilt first.
func (ix *Index) Search(ctx context.Context, text string, opts *SearchOptions) (Page, error) {
	if opts == nil {
		opts = &SearchOptions{}
	}
	q := parseQuery(text)
	if q.Empty() {
		return Page{}, fmt.Errorf("search: %w", ErrEmptyQuery)
	}
	page, err := ix.search(ctx, q, opts)
	if damaged(err) {
		if _, err := ix.Update(ctx); err != nil {
			return Page{}, err
		}
		page, err = ix.search(ctx, q, opts)
	}
	if err != nil {
		return Page{}, fmt.Errorf("search: %w", err)
	}
	return page, nil
}

func (ix *Index) search(ctx context.Context, q query, opts *SearchOptions) (Page, error) {
	after, err := parseCursor(opts.Cursor, q, opts)
	if err != nil {
		return Page{}, err
	}
	limit := opts.Limit
	if limit <= 0 {
		limit = 20
	}
	limit = min(limit, 1000)
	var page Page
	err = ix.find(ctx, func(c *conn) error {
		return c.read(func() error {
			page, err = q.page(c, opts, after, limit)
			return err
		})
	})
	return page, err
}

func (q query) page(c *conn, opts *SearchOptions, after found, limit int) (Page, error) {
	var page Page
	best, err := rank(c, q, opts, after, limit+1)
	if err != nil {
		return page, err
	}
	if len(best) > limit {
		best = best[:limit]
		page.Next = best[limit-1].cursor(q, opts)
	}
	snippets, err := q.snippets(c, best)
	if err != nil {
		return page, err
	}
	for _, f := range best {
		hit, err := f.hit(c)
		if err != nil {
			return page, err
		}
		hit.Snippet = snippets[f.num]
		page.Hits = append(page.Hits, hit)
	}
	return page, nil
}

// found is a place in the order of hits: lower scores first, then newer messages.
type found struct {
	score float64
	num   int64
}

// first is before all others.
var first = found{math.Inf(-1), math.MaxInt64}

const filterSQL = ` JOIN conv c ON c.num = d.conv
	WHERE (?11 OR d.save = 0) AND (?2 = '' OR c.id = ?2) AND (?3 = '' OR d.role = ?3)
	AND (?4 = 0 OR CASE d.time WHEN 0 THEN c.updated ELSE d.time END >= ?4)
	AND (?5 = '[]' OR lower(d.tool) IN (SELECT value FROM json_each(?5)))
	AND (?6 = '[]' OR d.role IN (SELECT value FROM json_each(?6)))`

const orderSQL = ` WHERE score > ?7 OR (score = ?7 AND num < ?8) ORDER BY score, num DESC LIMIT ?9`

// At most maxRanked matching messages are ranked, latest first, so that the time for
// a very common word does not grow with the store.
const matchSQL = `SELECT num, score FROM (
	SELECT d.num AS num, bm25(words, 1.0, 2.0) * d.weight AS score FROM words JOIN doc d ON d.num = words.rowid` + filterSQL + ` AND words MATCH ?1
	ORDER BY words.rowid DESC LIMIT ?10)` + orderSQL

const maxRanked = 5000

// Without words, the newest come first.
const listSQL = `SELECT num, score FROM (
	SELECT d.num AS num, -1.0 * CASE d.time WHEN 0 THEN c.updated ELSE d.time END AS score FROM doc d` + filterSQL + ` AND ?1 = '' AND ?10 > 0)` + orderSQL

func rank(c *conn, q query, opts *SearchOptions, after found, limit int) ([]found, error) {
	sql := matchSQL
	if len(q.Terms) == 0 {
		sql = listSQL
	}
	var since int64
	if !opts.Since.IsZero() {
		since = max(1, opts.Since.UnixMilli())
	}
	tools, err := list(corpus.ToolNames(q.Tools))
	if err != nil {
		return nil, err
	}
	roles, err := list(q.Roles)
	if err != nil {
		return nil, err
	}
	var out []found
	err = c.query(sql, func(s *sqlite3.Stmt) { out = append(out, found{s.ColumnFloat(1), s.ColumnInt64(0)}) },
		q.match(), opts.Conversation, string(opts.Role), since, tools, roles, after.score, after.num, limit, maxRanked, opts.Rewound)
	return out, err
}

// list formats strings for json_each.
func list(values []string) (string, error) {
	if len(values) == 0 {
		return "[]", nil
	}
	raw, err := json.Marshal(values)
	return string(raw), err
}

func (f found) hit(c *conn) (Hit, error) {
	h := Hit{Score: -f.score}
	err := c.query(`SELECT c.id, c.title, d.turn, d.message, d.role, d.kind, d.tool, d.subagent, CASE d.time WHEN 0 THEN c.updated ELSE d.time END, d.save
		FROM doc d JOIN conv c ON c.num = d.conv WHERE d.num = ?`, func(s *sqlite3.Stmt) {
		h.Conversation, h.Title, h.Turn, h.MessageID = s.ColumnText(0), s.ColumnText(1), s.ColumnInt(2), s.ColumnText(3)
		h.Role, h.Kind, h.Tool, h.Subagent = transcript.Role(s.ColumnText(4)), transcript.Kind(s.ColumnText(5)), s.ColumnText(6), s.ColumnText(7)
		h.Time, h.Save = time.UnixMilli(s.ColumnInt64(8)), uint64(s.ColumnInt64(9))
	}, f.num)
	return h, err
}

// The plus prevents a lookup per row: each would collect all words with a prefix
// again (20 hits of a prefix of thousands of words took 19 s and more, one scan 1.5
// s).
const (
	excerptSQL = "SELECT rowid, excerpt(words) FROM words WHERE words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))"
	startSQL   = "SELECT rowid, substr(body, 1, 1000) FROM words WHERE ? = '' AND rowid IN (SELECT value FROM json_each(?))"
)

// snippets returns the snippets of all hits, by number.
func (q query) snippets(c *conn, hits []found) (map[int64]Snippet, error) {
	nums := make([]int64, len(hits))
	for i, f := range hits {
		nums[i] = f.num
	}
	ids, err := json.Marshal(nums)
	if err != nil {
		return nil, err
	}
	sql := excerptSQL
	if len(q.Terms) == 0 {
		sql = startSQL
	}
	all := make(map[int64]Snippet, len(hits))
	err = c.query(sql, func(s *sqlite3.Stmt) { all[s.ColumnInt64(0)] = newSnippet(s.ColumnText(1)) }, q.match(), string(ids))
	return all, err
}

// A cursor is the checksum of the search, the score and the number.

func (f found) cursor(q query, opts *SearchOptions) string {
	b := binary.BigEndian.AppendUint32(nil, signature(q, opts))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(f.score))
	b = binary.BigEndian.AppendUint64(b, uint64(f.num))
	return base64.RawURLEncoding.EncodeToString(b)
}

func signature(q query, opts *SearchOptions) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q %q %q %q %d %v", q.match(), q.Tools, q.Roles, opts.Conversation, opts.Role, opts.Since.UnixMilli(), opts.Rewound)
	return h.Sum32()
}

func parseCursor(s string, q query, opts *SearchOptions) (found, error) {
	if s == "" {
		return first, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 20 || binary.BigEndian.Uint32(b) != signature(q, opts) {
		return found{}, ErrInvalidCursor
	}
	f := found{math.Float64frombits(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint64(b[12:]))}
	if math.IsNaN(f.score) {
		return found{}, ErrInvalidCursor
	}
	return f, nil
}
