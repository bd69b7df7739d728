package pgsearch_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/searchtest"
)

// corpus saves conversations of ten turns of words that occur as often as words
// do.
func corpus(b *testing.B, n int) *store {
	b.Helper()
	s := newStore()
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 10, 20_000)
	for i := range n {
		var texts []string
		for range 10 {
			var text strings.Builder
			for range 100 {
				fmt.Fprintf(&text, "word%d ", zipf.Uint64())
			}
			texts = append(texts, text.String())
		}
		s.say(b, fmt.Sprint("c", i), texts...)
	}
	return s
}

func BenchmarkUpdate(b *testing.B) {
	s, db := corpus(b, 100), openDB(b, newDatabase(b))
	for i := 0; b.Loop(); i++ {
		update(b, s.index(b, db, fmt.Sprint("tenant", i)))
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkSearch asks both indexes of one corpus in turns; ratio is Postgres' time over that of
// the embedded index.
func BenchmarkSearch(b *testing.B) {
	s, db := corpus(b, 1000), openDB(b, newDatabase(b))
	embedded, err := search.Open(b.Context(), s.Store, s.blobs, s.rows, nil)
	check(b, err)
	defer embedded.Close()
	both := []search.Searcher{s.index(b, db, "tenant"), embedded}
	for _, ix := range both {
		update(b, ix)
	}
	for _, query := range []struct{ kind, text string }{
		{"frequent", "word0 "}, {"two", "word5 word77 "}, {"phrase", `"word0 word1"`}, {"prefix", "word98"}, {"rare", "word9876 "},
	} {
		b.Run(query.kind, func(b *testing.B) {
			var took [2]time.Duration
			for b.Loop() {
				for i, ix := range both {
					begun := time.Now()
					if _, err := ix.Search(b.Context(), query.text, nil); err != nil {
						b.Fatal(err)
					}
					took[i] += time.Since(begun)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took[0].Seconds()*1e6/float64(b.N), "µs-postgres")
			b.ReportMetric(took[1].Seconds()*1e6/float64(b.N), "µs-embedded")
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ratio")
		})
	}
}

// BenchmarkSize measures what an index takes in the database, beside the text: of turns
// like those of docs/OPERATIONS.md, with words that occur as often as words do.
func BenchmarkSize(b *testing.B) {
	s, dsn := newStore(), newDatabase(b)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 10, 200_000)
	text := func(n int) string {
		var out strings.Builder
		for out.Len() < n {
			out.WriteString(strconv.FormatUint(zipf.Uint64()*7919+31, 36) + " ")
		}
		return out.String()
	}
	size, n := 0, 0
	db := openDB(b, dsn)
	ix := s.index(b, db, "tenant")
	for b.Loop() {
		for range 50 {
			n++
			c, err := s.Create(b.Context(), conversation.Info{ID: fmt.Sprint("c", n)})
			check(b, err)
			for range 20 {
				ask := text(200)
				size += len(ask)
				var steps []*agentv1.ConversationStep
				for range 6 {
					say := text(1500)
					size += len(say)
					steps = append(steps, searchtest.Say(say))
				}
				searchtest.Add(b, c, searchtest.Turn(b, ask, steps...))
			}
		}
		update(b, ix)
	}
	c, err := pgx.Connect(b.Context(), dsn)
	check(b, err)
	defer c.Close(b.Context())
	for _, table := range []string{"conv", "run", "segment", "block"} {
		var bytes int64
		_, err := c.Exec(b.Context(), "VACUUM FULL stet_search."+table)
		check(b, err)
		check(b, c.QueryRow(b.Context(), "SELECT pg_total_relation_size('stet_search."+table+"')").Scan(&bytes))
		b.ReportMetric(float64(bytes)/float64(size), table+"/text")
	}
	b.ReportMetric(float64(size)/float64(n), "text-bytes/conv")
}
