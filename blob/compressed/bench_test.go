package compressed_test

import (
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
)

// BenchmarkAppend adds an entry to lists of several lengths. It appends 256
// entries to each list per operation and starts over, so that all lengths see
// the same positions of a chain.
func BenchmarkAppend(b *testing.B) {
	perOp := map[int]float64{}
	for _, start := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(start), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := blob.Checked(compressed.New(memblob.New(), nil))
				list := blob.NewBuilder()
				for n := range start {
					list.Append(entry(n))
				}
				first := list.Blob(nil)
				if err := s.Put(b.Context(), first); err != nil {
					b.Fatal(err)
				}
				list.Commit(first)
				b.StartTimer()
				for n := range 256 {
					list.Append(entry(start + n))
					next := list.Blob(nil)
					if err := s.Put(b.Context(), next); err != nil {
						b.Fatal(err)
					}
					list.Commit(next)
				}
			}
			perOp[start] = float64(b.Elapsed().Nanoseconds()) / float64(b.N) / 256
			b.ReportMetric(perOp[start], "ns/append")
			if ten := perOp[10]; ten > 0 && start > 10 {
				b.ReportMetric(perOp[start]/ten, "x-of-10")
			}
		})
	}
}

// BenchmarkStore is the common benchmark beside the bare store.
func BenchmarkStore(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		blobtest.Bench(b, func(*testing.B) blob.Store { return memblob.New() })
	})
	b.Run("compressed", func(b *testing.B) {
		blobtest.Bench(b, func(*testing.B) blob.Store { return compressed.New(memblob.New(), nil) })
	})
}

// BenchmarkEdit stores a small edit of a 64 KiB text, hinted.
func BenchmarkEdit(b *testing.B) {
	s := compressed.New(memblob.New(), nil)
	content := text(1, 9000)
	last := blob.New(content)
	if err := s.Put(b.Context(), last); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(content)))
	for n := 0; b.Loop(); n++ {
		copy(content[len(content)/2:], fmt.Sprintf("edit number %d", n))
		next := blob.New(content)
		next.Like = last.ID
		if err := s.Put(b.Context(), next); err != nil {
			b.Fatal(err)
		}
		last = next
	}
}
