package pgsearch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Dump returns everything that the index holds, sorted, the same for all tenants.
func (ix *Index) Dump(t testing.TB) []string {
	t.Helper()
	rows, err := ix.db.pool.Query(t.Context(), ix.db.sql(`SELECT r.num, r.conv, r.docs, c.id, c.title FROM @run r JOIN @conv c ON c.tenant = r.tenant AND c.conv = r.conv
		WHERE r.tenant = $1`), ix.tenant)
	if err != nil {
		t.Fatal(err)
	}
	words := ix.words(t)
	var all []string
	var num int64
	var conv, data, id, title []byte
	_, err = pgx.ForEachRow(rows, []any{&num, &conv, &data, &id, &title}, func() error {
		r, err := decodeRun(num, conv, data)
		for i, d := range r.docs {
			if !d.gone {
				all = append(all, fmt.Sprintf("%s %q %+v %v", id, title, d, words[num*runSize+int64(i)]))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// words returns the places of words of each message, whatever the salt.
func (ix *Index) words(t testing.TB) map[int64][]string {
	t.Helper()
	segments, err := ix.segments(t.Context(), ix.db.pool)
	if err != nil {
		t.Fatal(err)
	}
	words := make(map[int64][]string)
	for _, s := range segments {
		c := &cursor{lease: &lease{Index: ix}, segment: s, first: []byte{}, block: -1}
		for {
			if err := c.fill(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(c.entries) == 0 {
				break
			}
			if err := decodeList(c.entries[0].data, s.start, func(p posting) { words[p.doc] = append(words[p.doc], fmt.Sprint(p.body, p.path, p.wide)) }); err != nil {
				t.Fatal(err)
			}
			c.entries = c.entries[1:]
		}
	}
	for _, w := range words {
		slices.Sort(w)
	}
	return words
}

// Kill makes the lease of a process that ended without giving it back.
func (ix *Index) Kill(t testing.TB) {
	t.Helper()
	if _, err := ix.db.pool.Exec(t.Context(), ix.db.sql("UPDATE @tenant SET holder = 'killed', until = 0 WHERE tenant = $1"), ix.tenant); err != nil {
		t.Fatal(err)
	}
}

// Hold takes the lease. The result tries to change the index with it.
func (ix *Index) Hold(t testing.TB) (change func() error) {
	t.Helper()
	l, err := ix.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return l.change(t.Context(), func(pgx.Tx) error { return nil }) }
}

// Small lets segments of few messages be merged, few conversations be a batch, one segment
// be read at first, and segments be examined after each removal, until the test ends.
func Small(t testing.TB) {
	t.Helper()
	before, batch, tidy, first := mergeAt, batchConversations, tidyAt, firstSegments
	mergeAt, batchConversations, tidyAt, firstSegments = 2, 2, 1, 1
	t.Cleanup(func() { mergeAt, batchConversations, tidyAt, firstSegments = before, batch, tidy, first })
}

// Segments lets segments stay as they are, and one be read at first, until the test ends.
func Segments(t testing.TB) {
	t.Helper()
	before, first := mergeAt, firstSegments
	mergeAt, firstSegments = math.MaxInt, 1
	t.Cleanup(func() { mergeAt, firstSegments = before, first })
}

// Acquired returns how many connections are in use, and how many there are.
func (db *DB) Acquired() (used, all int32) {
	stat := db.pool.Stat()
	return stat.AcquiredConns(), stat.TotalConns()
}

// Exec changes the tables behind the back of the index.
func (db *DB) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := db.pool.Exec(t.Context(), db.sql(sql), args...); err != nil {
		t.Fatal(err)
	}
}

// Count returns how many rows a table has, of all tenants.
func (db *DB) Count(t testing.TB, table string) int {
	t.Helper()
	var n int
	if err := db.pool.QueryRow(t.Context(), db.sql("SELECT count(*) FROM @"+table)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
