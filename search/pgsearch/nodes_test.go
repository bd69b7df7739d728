package pgsearch_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/pgsearch"
	"github.com/stet-dev/stet/search/searchtest"
)

// store is conversations in memory.
type store struct {
	*conversation.Store
	blobs blob.Store
	rows  *memkv.Store
}

func newStore() *store {
	mem := memblob.New()
	s := &store{blobs: blob.Checked(mem), rows: memkv.New(mem)}
	s.Store = conversation.New(s.blobs, s.rows, nil)
	return s
}

// say saves a conversation of turns, or adds them to it.
func (s *store) say(t testing.TB, id string, texts ...string) {
	t.Helper()
	c, err := s.Open(t.Context(), id)
	if errors.Is(err, conversation.ErrNotFound) {
		c, err = s.Create(t.Context(), conversation.Info{ID: id, Title: "about " + id})
	}
	check(t, err)
	for _, text := range texts {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text})
		check(t, err)
		check(t, c.AppendTurn(t.Context(), turn))
	}
	_, err = c.Save(t.Context(), nil)
	check(t, err)
}

func (s *store) index(t testing.TB, db *pgsearch.DB, tenant string) *pgsearch.Index {
	t.Helper()
	ix, err := db.Index(tenant, s.Store, s.blobs, s.rows)
	check(t, err)
	return ix
}

func update(t testing.TB, ix search.Searcher, ids ...string) search.Stats {
	t.Helper()
	stats, err := ix.Update(t.Context(), ids...)
	check(t, err)
	return stats
}

// find returns the hits of a query as "conversation/message", sorted.
func find(t testing.TB, ix search.Searcher, query string, opts *search.SearchOptions) []string {
	t.Helper()
	out := searchtest.Find(t, ix, query, opts)
	slices.Sort(out)
	return out
}

func newDatabase(t testing.TB) string {
	t.Helper()
	return realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t)
}

func TestTenantsDoNotMeet(t *testing.T) {
	db := openDB(t, newDatabase(t))
	one, two := newStore(), newStore()
	one.say(t, "same", "the elephant", "only here")
	two.say(t, "same", "the elephant walks")
	first, second := one.index(t, db, "one"), two.index(t, db, "two")
	update(t, first)
	update(t, second)
	if got := find(t, first, "elephant", nil); !slices.Equal(got, []string{"same/turn-1"}) {
		t.Errorf("the first tenant finds %q", got)
	}
	if got := find(t, second, "only", nil); got != nil {
		t.Errorf("the second tenant finds %q of the first", got)
	}
	if got := find(t, second, "role:user", &search.SearchOptions{Conversation: "same"}); len(got) != 1 {
		t.Errorf("the second tenant lists %q", got)
	}
	check(t, one.Delete(t.Context(), "same", nil))
	update(t, first)
	_, err := first.Rebuild(t.Context())
	check(t, err)
	if got := find(t, second, "walks", nil); len(got) != 1 {
		t.Errorf("after the first tenant's is removed the second finds %q", got)
	}
	for _, bad := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 256)} {
		if _, err := db.Index(bad, one.Store, one.blobs, one.rows); err == nil {
			t.Errorf("the tenant %.10q is taken", bad)
		}
	}
}

// TestNodesAtOnce has nodes that save, update, rebuild and search at the same time.
func TestNodesAtOnce(t *testing.T) {
	const nodes, rounds = 4, 6
	dsn, s := newDatabase(t), newStore()
	var group sync.WaitGroup
	for n := range nodes {
		ix := s.index(t, openDB(t, dsn), "tenant")
		group.Go(func() {
			for round := range rounds {
				s.say(t, fmt.Sprint("own", n), fmt.Sprintf("word%dx%d is said", n, round))
				if round == 3 && n == 0 {
					if _, err := ix.Rebuild(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if _, err := ix.Update(t.Context()); err != nil {
					t.Error(err)
				}
				if got := find(t, ix, fmt.Sprintf("word%dx%d", n, round), nil); len(got) > 1 {
					t.Errorf("a word that was said once is found %d times", len(got))
				}
			}
		})
	}
	group.Wait()
	ix := s.index(t, openDB(t, dsn), "tenant")
	update(t, ix)
	if got := find(t, ix, "said", &search.SearchOptions{Limit: 100}); len(got) != nodes*rounds {
		t.Errorf("found %d of %d messages", len(got), nodes*rounds)
	}
	before := ix.Dump(t)
	_, err := ix.Rebuild(t.Context())
	check(t, err)
	if after := ix.Dump(t); !slices.Equal(before, after) {
		t.Errorf("nodes at once gave %d messages, a rebuild %d", len(before), len(after))
	}
	if stats := update(t, ix); stats.Conversations != 0 {
		t.Errorf("an update without changes looked at %+v", stats)
	}
}

// stopping ends a context at one of the readings of blobs.
type stopping struct {
	blob.Store
	left   atomic.Int64
	cancel context.CancelFunc
}

func (s *stopping) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if s.left.Add(-1) == 0 {
		s.cancel()
	}
	return s.Store.Get(ctx, id)
}

// TestInterruptedUpdate stops updates everywhere: what is there afterwards is what
// was there before or after a conversation, and the next update makes the rest.
func TestInterruptedUpdate(t *testing.T) {
	db, s := openDB(t, newDatabase(t)), newStore()
	for i := range 3 {
		s.say(t, fmt.Sprint("c", i), "alpha", "beta", "gamma")
	}
	whole := s.index(t, db, "whole")
	update(t, whole)
	want := whole.Dump(t)
	stopped := 0
	for at := int64(1); ; at++ {
		ctx, cancel := context.WithCancel(t.Context())
		blobs := &stopping{Store: s.blobs, cancel: cancel}
		blobs.left.Store(at)
		name := fmt.Sprint("stopped ", at)
		ix, err := db.Index(name, conversation.New(blobs, s.rows, nil), blobs, s.rows)
		check(t, err)
		_, err = ix.Update(ctx)
		cancel()
		if err == nil {
			break
		}
		stopped++
		if got := len(ix.Dump(t)); got%4 != 0 { // three turns and a title
			t.Errorf("stopped at reading %d there are %d messages", at, got)
		}
		rest := s.index(t, db, name)
		update(t, rest)
		if got := rest.Dump(t); !slices.Equal(got, want) {
			t.Errorf("stopped at reading %d and updated again there are %d messages, want %d", at, len(got), len(want))
		}
	}
	if stopped < 5 {
		t.Errorf("only %d updates were stopped", stopped)
	}
}

func TestOtherTables(t *testing.T) {
	ctx, dsn := t.Context(), newDatabase(t)
	var group sync.WaitGroup
	for range 6 { // nodes that start together
		group.Go(func() {
			db, err := pgsearch.Open(ctx, dsn, nil)
			if err != nil {
				t.Error(err)
				return
			}
			db.Close()
		})
	}
	group.Wait()
	c, err := pgx.Connect(ctx, dsn)
	check(t, err)
	defer c.Close(ctx)
	exec := func(sql string) {
		t.Helper()
		_, err := c.Exec(ctx, sql)
		check(t, err)
	}
	s := newStore()
	s.say(t, "c", "elephant")
	update(t, s.index(t, openDB(t, dsn), "t"))
	exec("UPDATE stet_search.meta SET value = '3' WHERE key = 'version'")
	if _, err := pgsearch.Open(ctx, dsn, nil); !errors.Is(err, pgsearch.ErrNewerFormat) {
		t.Errorf("newer tables: got %v, want %v", err, pgsearch.ErrNewerFormat)
	}
	exec("UPDATE stet_search.meta SET value = '0' WHERE key = 'version'")
	db := openDB(t, dsn)
	if n := db.Count(t, "run"); n != 0 {
		t.Errorf("older tables were kept with %d messages", n)
	}
	ix := s.index(t, db, "t")
	update(t, ix)
	if got := find(t, ix, "elephant", nil); len(got) != 1 {
		t.Errorf("created again: %q", got)
	}
	exec("CREATE SCHEMA other; CREATE TABLE other.doc (mine text); INSERT INTO other.doc VALUES ('kept')")
	if _, err := pgsearch.Open(ctx, dsn, &pgsearch.Options{Schema: "other"}); err == nil {
		t.Error("a schema of somebody else was taken")
	}
	var kept string
	check(t, c.QueryRow(ctx, "SELECT mine FROM other.doc").Scan(&kept))
}

func TestBadConnectionStrings(t *testing.T) {
	for _, dsn := range []string{"postgres://u:canary@host:notaport/x", "canary", "postgres://u:canary@127.0.0.1:1/x?connect_timeout=2"} {
		_, err := pgsearch.Open(t.Context(), dsn, nil)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v, want an error that does not repeat the string", err)
		}
	}
	if _, err := pgsearch.Open(t.Context(), "postgres://u@127.0.0.1:1/x", &pgsearch.Options{Schema: `x"; --`}); err == nil {
		t.Error("a strange schema is taken")
	}
}

// TestARareWordTakesThreeRoundTrips: a search spends its time on the way to the database. The
// first one of a process does not know the salt of the tenant, and every connection prepares
// a statement when it first runs it, so the fewest of more searches than there are
// connections count.
func TestARareWordTakesThreeRoundTrips(t *testing.T) {
	dsn, trips := realservers.CountTrips(t, newDatabase(t))
	s := newStore()
	s.say(t, "zoo", "the elephant", "the giraffe")
	ix := s.index(t, openDB(t, dsn), "tenant")
	update(t, ix)
	find := func(word string) {
		page, err := ix.Search(t.Context(), word, nil)
		check(t, err)
		if len(page.Hits) != 1 || page.Hits[0].Title != "about zoo" {
			t.Errorf("%q found %+v", word, page.Hits)
		}
	}
	find("elephant ")
	fewest := int64(math.MaxInt64)
	for range 10 {
		fewest = min(fewest, trips.Of(func() { find("giraffe ") }))
	}
	if fewest > 3 {
		t.Errorf("a search for a word of one message took %d round trips, want 3", fewest)
	}
}

// TestSearchesReadAllSegments: a search reads the latest segments first, and the others in
// further steps, which grow.
func TestSearchesReadAllSegments(t *testing.T) {
	pgsearch.Segments(t)
	db := openDB(t, newDatabase(t))
	s := newStore()
	ix := s.index(t, db, "tenant")
	for n := range 12 {
		s.say(t, fmt.Sprint("c", n), "the elephant", fmt.Sprintf("giraffe%d", n))
		update(t, ix)
	}
	if n := db.Count(t, "segment"); n != 12 {
		t.Fatalf("there are %d segments, want 12", n)
	}
	for range 2 { // the second search knows the salt
		page, err := ix.Search(t.Context(), "elephant ", nil)
		check(t, err)
		if len(page.Hits) != 12 {
			t.Errorf("found %d messages, want 12", len(page.Hits))
		}
		for n := range 12 {
			page, err := ix.Search(t.Context(), fmt.Sprintf("giraffe%d ", n), nil)
			check(t, err)
			if len(page.Hits) != 1 || page.Hits[0].Conversation != fmt.Sprint("c", n) {
				t.Errorf("giraffe%d: found %+v", n, page.Hits)
			}
		}
	}
}

// TestAnotherSalt: an index that was rebuilt with another salt, on another node, is searched
// with that one.
func TestAnotherSalt(t *testing.T) {
	db := openDB(t, newDatabase(t))
	s := newStore()
	s.say(t, "zoo", "the elephant")
	here, there := s.index(t, db, "tenant"), s.index(t, db, "tenant")
	find := func() {
		t.Helper()
		page, err := here.Search(t.Context(), "elephant ", nil)
		check(t, err)
		if len(page.Hits) != 1 {
			t.Errorf("found %+v", page.Hits)
		}
	}
	update(t, here)
	find()
	db.Exec(t, `UPDATE @tenant SET salt = 'eight by'`)
	_, err := there.Rebuild(t.Context())
	check(t, err)
	find()
	find()
}

// TestFailedSearchesKeepTheirConnection: a damaged block fails a search and costs no
// connection.
func TestFailedSearchesKeepTheirConnection(t *testing.T) {
	db := openDB(t, newDatabase(t))
	s := newStore()
	s.say(t, "zoo", "the elephant")
	ix := s.index(t, db, "tenant")
	update(t, ix)
	_, err := ix.Search(t.Context(), "elephant ", nil)
	check(t, err)
	_, before := db.Acquired()
	db.Exec(t, `UPDATE @block SET data = 'damaged'`)
	for range 20 {
		if _, err := ix.Search(t.Context(), "elephant ", nil); err == nil {
			t.Fatal("a damaged block was read")
		}
	}
	if used, all := db.Acquired(); used != 0 || all != before {
		t.Errorf("%d connections are in use, and there are %d of %d", used, all, before)
	}
}
