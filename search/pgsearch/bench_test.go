package pgsearch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stet-dev/stet/search"
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

func BenchmarkSearch(b *testing.B) {
	s, db := corpus(b, 1000), openDB(b, newDatabase(b))
	embedded, err := search.Open(b.Context(), s.Store, s.blobs, s.rows, nil)
	check(b, err)
	defer embedded.Close()
	for name, ix := range map[string]search.Searcher{"postgres": s.index(b, db, "tenant"), "embedded": embedded} {
		update(b, ix)
		for kind, query := range map[string]string{"rare": "word9876 ", "frequent": "word0 ", "two": "word5 word77 ", "phrase": `"word0 word1"`, "prefix": "word98"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				for b.Loop() {
					if _, err := ix.Search(b.Context(), query, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
