package meter_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/meter"
)

// printed is a provider that prints what it gets.
type printed struct{}

func (printed) Meter(string) meter.Meter { return printed{} }

func (printed) Counter(name, _ string, labels ...string) meter.Counter {
	return line(fmt.Sprint(name, labels))
}

func (printed) Histogram(name, _ string, _ []float64) meter.Histogram { return line(name) }

func (printed) Gauges(read func(context.Context) ([]int64, error), gauges ...meter.Gauge) func() {
	return func() {}
}

type line string

func (l line) Add(_ context.Context, n int64)      { fmt.Println(l, n) }
func (l line) Record(_ context.Context, v float64) { fmt.Println(l, v) }

func Example() {
	for _, provider := range []meter.Provider{printed{}, nil} { // nil measures nothing
		m := meter.Of(provider, "example.com/cache")
		m.Counter("cache.gets", "Gets.", "source", "memory").Add(context.Background(), 1)
		m.Histogram("cache.duration_ms", "Durations.", []float64{1, 10, 100}).Record(context.Background(), 2.5)
	}
	// Output:
	// cache.gets[source memory] 1
	// cache.duration_ms 2.5
}
