package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/internal/testenv"
)

// followersEach is how many followers every agent has.
const followersEach = 5

// BenchmarkLoad lets 200 agents append to one embedded server while 1,000
// followers read, everything over RPC; one operation is one append. An event
// carries the time at which it was sent, which gives the time to wake-up. In
// "steady" every agent appends twice a second, in "full" as fast as it can. In "busy" it
// is steady, and other processes want four times the processors that there are.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct {
		name   string
		pace   time.Duration
		others int
	}{
		{"steady", 500 * time.Millisecond, 0}, {"full", 0, 0}, {"busy", 500 * time.Millisecond, 4 * runtime.NumCPU()},
	} {
		b.Run(c.name, func(b *testing.B) {
			_, address := start(b)
			for range c.others {
				occupy(b)
			}
			result, err := load(b, address, 200, b.N/200+1, c.pace)
			if err != nil {
				b.Fatal(err)
			}
			result.report(b)
		})
	}
}

// occupy keeps a processor busy until the benchmark ends.
func occupy(b *testing.B) {
	b.Helper()
	other := exec.CommandContext(b.Context(), "sh", "-c", "while :; do :; done")
	if err := other.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = other.Wait() }) // it was killed
}

// The same in small: every event reaches every follower of its agent.
func TestLoadIsDeliveredToEveryFollower(t *testing.T) {
	_, address := start(t)
	result, err := load(t, address, testenv.Scale(40, 200), 20, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := result.appended * followersEach; result.delivered != want {
		t.Errorf("%d events were delivered, want %d", result.delivered, want)
	}
}

type loaded struct {
	appended, delivered int
	took                time.Duration
	waits               []time.Duration // from append to arrival
	memory              float64         // bytes of heap afterwards
}

func (l *loaded) report(b *testing.B) {
	b.ReportMetric(float64(l.delivered)/float64(l.appended), "delivered/appended")
	b.ReportMetric(float64(l.appended)/l.took.Seconds(), "appends/s")
	b.ReportMetric(float64(l.delivered)/l.took.Seconds(), "events/s")
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(l.percentile(p))/1e6, fmt.Sprintf("p%d-ms", p))
	}
	b.ReportMetric(l.memory/(1<<20), "heap-MiB")
}

func (l *loaded) percentile(p int) time.Duration {
	slices.Sort(l.waits)
	return l.waits[min(len(l.waits)-1, len(l.waits)*p/100)]
}

// load lets every agent append a number of events and end. It returns when every
// follower has seen the end.
func load(t testing.TB, address string, agents, each int, pace time.Duration) (*loaded, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	followers := followersEach * agents
	writers := dial(t, address).Agents()
	for n := range agents {
		if _, err := writers.Create(ctx, strconv.Itoa(n), "", ""); err != nil {
			return nil, err
		}
	}
	before := heap()
	readers := make([]*client.Agents, 20) // which share connections
	for i := range readers {
		readers[i] = dial(t, address).Agents()
	}
	waits, errs := make([][]time.Duration, followers), make([]error, followers+agents)
	var ready, work sync.WaitGroup
	ready.Add(followers)
	for n := range followers {
		work.Go(func() {
			waits[n], errs[n] = arrivals(ctx, readers[n%len(readers)], strconv.Itoa(n%agents), sync.OnceFunc(ready.Done))
			if errs[n] != nil {
				cancel()
			}
		})
	}
	ready.Wait()
	begin := time.Now()
	for n := range agents {
		work.Go(func() {
			if errs[followers+n] = appendTimes(ctx, writers, strconv.Itoa(n), each, pace); errs[followers+n] != nil {
				cancel()
			}
		})
	}
	work.Wait()
	l := &loaded{appended: agents * each, took: time.Since(begin), waits: slices.Concat(waits...)}
	l.delivered, l.memory = len(l.waits), max(0, heap()-before)
	return l, errors.Join(errs...)
}

// heap is the memory in use.
func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func appendTimes(ctx context.Context, agents *client.Agents, id string, each int, pace time.Duration) error {
	for range each {
		if pace > 0 {
			time.Sleep(pace/2 + rand.N(pace))
		}
		if _, err := agents.Append(ctx, id, "", text(strconv.FormatInt(time.Now().UnixNano(), 10))); err != nil {
			return err
		}
	}
	return agents.Archive(ctx, id)
}

// arrivals follows an agent to its end and returns how long each event took.
func arrivals(ctx context.Context, agents *client.Agents, id string, ready func()) ([]time.Duration, error) {
	defer ready()
	var waits []time.Duration
	for e, err := range agents.Follow(ctx, id, nil) {
		if err != nil {
			return nil, err
		}
		if e.Update == nil {
			ready()
			continue
		}
		sent, err := strconv.ParseInt(e.Update.GetTextDelta().GetText(), 10, 64)
		if err != nil {
			return nil, err
		}
		waits = append(waits, time.Since(time.Unix(0, sent)))
	}
	return waits, nil
}
