package scenario

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet/client"
)

// BenchmarkFollowers measures what a thousand followers of one agent cost those who append
// to it: the time of an append with them, divided by that of an append to an agent without
// followers. Everything goes over RPC. In "paced" the next append waits until all followers
// have the last one, in "full" it does not. Both agents take turns, in blocks.
func BenchmarkFollowers(b *testing.B) {
	const followers = 1000
	for _, paced := range []bool{true, false} {
		name, block := "full", 20
		if paced {
			name, block = "paced", 4
		}
		b.Run(name, func(b *testing.B) {
			_, address := start(b)
			ctx, cancel := context.WithCancel(b.Context())
			agents := dial(b, address).Agents()
			for _, id := range []string{"alone", "followed"} {
				if _, err := agents.Create(ctx, id, "", ""); err != nil {
					b.Fatal(err)
				}
			}
			crowd := gather(ctx, b, address, "followed", followers)
			defer crowd.work.Wait()
			defer cancel()
			waits := map[string][]time.Duration{}
			b.ResetTimer()
			for n := 0; n < b.N; n += block {
				for _, id := range []string{"alone", "followed"} {
					for range block {
						begun := time.Now()
						if _, err := agents.Append(ctx, id, "", text(strconv.Itoa(n))); err != nil {
							b.Fatal(err)
						}
						waits[id] = append(waits[id], time.Since(begun))
						if id == "followed" {
							crowd.want.Add(followers)
						}
						if paced {
							crowd.settle(b)
						}
					}
					crowd.settle(b)
				}
			}
			b.StopTimer()
			for _, all := range waits {
				slices.Sort(all)
			}
			alone, followed := waits["alone"], waits["followed"]
			b.ReportMetric(float64(followed[len(followed)/2])/float64(alone[len(alone)/2]), "ratio")
			b.ReportMetric(float64(alone[len(alone)/2])/1e6, "alone-p50-ms")
			b.ReportMetric(float64(followed[len(followed)/2])/1e6, "followed-p50-ms")
		})
	}
}

// gathered are the followers of one agent.
type gathered struct {
	work      sync.WaitGroup
	got, want atomic.Int64
	arrived   chan struct{} // has a value when something has arrived
}

// gather starts followers, and returns when all of them have the initial state.
func gather(ctx context.Context, t testing.TB, address, agent string, n int) *gathered {
	t.Helper()
	c := &gathered{arrived: make(chan struct{}, 1)}
	readers := make([]*client.Agents, 20) // which share connections
	for i := range readers {
		readers[i] = dial(t, address).Agents()
	}
	var ready sync.WaitGroup
	ready.Add(n)
	for i := range n {
		c.work.Go(func() {
			here := sync.OnceFunc(ready.Done)
			defer here()
			for e, err := range readers[i%len(readers)].Follow(ctx, agent, nil) {
				if err != nil {
					return
				}
				if e.Update == nil {
					here()
					continue
				}
				c.got.Add(1)
				select {
				case c.arrived <- struct{}{}:
				default:
				}
			}
		})
	}
	ready.Wait()
	return c
}

// settle waits until everything has arrived.
func (c *gathered) settle(t testing.TB) {
	t.Helper()
	for c.got.Load() < c.want.Load() {
		select {
		case <-c.arrived:
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d events have arrived", c.got.Load(), c.want.Load())
		}
	}
}
