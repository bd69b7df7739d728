package search_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stet-dev/stet/conversation"
)

// corpus saves conversations of ten turns of words that occur as often as words
// do.
func corpus(b *testing.B, n int) *fixture {
	b.Helper()
	f := newFixture(b)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 10, 20_000)
	text := func(words int) string {
		var s strings.Builder
		for range words {
			fmt.Fprintf(&s, "word%d ", zipf.Uint64())
		}
		return s.String()
	}
	for i := range n {
		var turns []conversation.Turn
		for range 10 {
			turns = append(turns, turn(b, text(20), say(text(60)), shell(text(5), text(100))))
		}
		f.save(b, fmt.Sprint("c", i), turns...)
	}
	return f
}

func BenchmarkSearch(b *testing.B) {
	f := corpus(b, 1000)
	f.update(b)
	for name, query := range map[string]string{
		"rare": "word19000", "common": `"word1"`, "two": "word5 word300", "prefix": "word12", "wide prefix": "word1", "phrase": `"word1 word2"`, "tool": "tool:shell word50",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.index.Search(b.Context(), query, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	f := corpus(b, 1000)
	f.update(b)
	c, err := f.Open(b.Context(), "c500")
	check(b, err)
	b.Run("nothing", func(b *testing.B) {
		for b.Loop() {
			f.update(b)
		}
	})
	b.Run("one turn", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			add(b, c, turn(b, "something new"))
			b.StartTimer()
			f.update(b)
		}
	})
}

func BenchmarkRebuild(b *testing.B) {
	f := corpus(b, 100)
	for b.Loop() {
		if _, err := f.index.Rebuild(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/100, "ms/conversation")
}
