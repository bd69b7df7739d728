package compressed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
)

// BenchmarkAppend adds entries to a list of 10 and to one of 10,000, in turns
// within one run, so that a busy machine slows down both alike. Both lists see
// the same positions of a chain and share one store, whose encoders are made
// before the clock runs.
func BenchmarkAppend(b *testing.B) {
	const appends = 256
	s := blob.Checked(compressed.New(memblob.New(), nil))
	var spent [2]time.Duration
	salt := 0
	run := func(start int) time.Duration {
		list := blob.NewBuilder()
		list.Append(fmt.Appendf(nil, "list %d", salt)) // no two runs share a blob
		salt++
		for n := range start {
			list.Append(entry(n))
		}
		add := func() {
			next := list.Blob(nil)
			if err := s.Put(b.Context(), next); err != nil {
				b.Fatal(err)
			}
			list.Commit(next)
		}
		add()
		began := time.Now()
		for n := range appends {
			list.Append(entry(start + n))
			add()
		}
		return time.Since(began)
	}
	run(10)
	run(10_000)
	for b.Loop() {
		spent[0] += run(10)
		spent[1] += run(10_000)
	}
	each := float64(b.N) * appends
	b.ReportMetric(float64(spent[0].Nanoseconds())/each, "ns/append-at-10")
	b.ReportMetric(float64(spent[1].Nanoseconds())/each, "ns/append-at-10000")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
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
