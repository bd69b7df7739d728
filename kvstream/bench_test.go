package kvstream_test

import (
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

// BenchmarkOverHTTP2 measures round trips over loopback, one at a time.
func BenchmarkOverHTTP2(b *testing.B) {
	a := listenAgents(b, nil)
	blobtest.Bench(b, func(b *testing.B) blob.Store { return a.run(b, a.addr, memblob.New(), nil).Store })
}

// BenchmarkPutMany measures a Put of 100 blobs, whose requests share the way.
func BenchmarkPutMany(b *testing.B) {
	a := listenAgents(b, nil)
	remote := a.run(b, a.addr, memblob.New(), nil).Store
	blobs := numbers(100)
	for b.Loop() {
		if err := remote.Put(b.Context(), blobs...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(blobs))/b.Elapsed().Seconds(), "blobs/s")
}
