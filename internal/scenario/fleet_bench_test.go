package scenario

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/internal/realservers"
)

// BenchmarkAcrossNodes measures how long an event that is appended on one node
// takes to a follower on another one, by RPC on both sides and over a database
// with fsync on; one operation is one append.
func BenchmarkAcrossNodes(b *testing.B) {
	s := newSite(b, realservers.Postgres(b, realservers.PostgresOptions{Fsync: true}).NewDatabase(b), realservers.S3(b))
	var sides [2]*client.Agents
	for i := range sides {
		n := s.startNodes(b, 1)
		sides[i] = n.client(b).Agents()
	}
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	if _, err := sides[0].Create(ctx, "worker", "", ""); err != nil {
		b.Fatal(err)
	}
	var waits []time.Duration
	var failed error
	var ready, work sync.WaitGroup
	ready.Add(1)
	work.Go(func() { waits, failed = arrivals(ctx, sides[1], "worker", sync.OnceFunc(ready.Done)) })
	ready.Wait()
	b.ResetTimer()
	if err := appendTimes(ctx, sides[0], "worker", b.N, 0); err != nil {
		b.Fatal(err)
	}
	work.Wait()
	if failed != nil || len(waits) != b.N {
		b.Fatalf("%d of %d events, %v", len(waits), b.N, failed)
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(waits[len(waits)*99/100])/1e6, "p99-ms")
}
