package cloudagent_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/sqlite"
)

// BenchmarkAppend has 200 agents append durably to the embedded store; one
// operation is one append.
func BenchmarkAppend(b *testing.B) {
	db, err := sqlite.Open(b.Context(), b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	s := cloudagent.New(blob.Checked(db.Blobs()), db.Rows(), nil)
	const agents = 200
	for i := range agents {
		if _, err := s.Create(b.Context(), cloudagent.Spec{ID: fmt.Sprint(i), Status: running}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range agents {
		wg.Go(func() {
			for range b.N/agents + 1 {
				if _, err := s.AppendUpdate(b.Context(), fmt.Sprint(i), nil, text("a few words of an answer")); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// BenchmarkStream reads a log of 10,000 events; one operation is one event.
func BenchmarkStream(b *testing.B) {
	s := memory().store()
	made, err := s.Create(b.Context(), cloudagent.Spec{ID: "a"})
	if err != nil {
		b.Fatal(err)
	}
	texts := make([]any, 2000)
	for range 5 {
		if err := appendTexts(b.Context(), s, "a", texts...); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Archive(b.Context(), "a"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; n < b.N; {
		for _, err := range s.Stream(b.Context(), "a", &cloudagent.StreamOptions{After: made.Head.String()}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
}
