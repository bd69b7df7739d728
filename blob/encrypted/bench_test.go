package encrypted

import (
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

// The two benchmarks belong side by side: what counts is their ratio.
func BenchmarkPlain(b *testing.B) {
	blobtest.Bench(b, func(*testing.B) blob.Store { return blob.Checked(memblob.New()) })
}

func BenchmarkSealed(b *testing.B) {
	ring := newRing(b)
	blobtest.Bench(b, func(*testing.B) blob.Store { return blob.Checked(newStore(memblob.New(), ring, nil)) })
}
