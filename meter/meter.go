// Package meter reports figures of stores and layers: counters, histograms and gauges
// behind small interfaces. It promises that a program which measures nothing links no
// metrics library. A Provider decides where the figures go; package otelmeter has the one
// for OpenTelemetry:
//
//	db, err := stet.Open(ctx, dir, &stet.Options{MeterProvider: otelmeter.Global()})
//
// A package that measures makes its instruments once and reuses them:
//
//	gets := meter.Of(opts.MeterProvider, "example.com/cache").Counter("cache.gets", "Gets.", "source", "memory")
//	gets.Add(ctx, 1)
//
// Measuring never fails: a provider keeps its errors to itself.
package meter

import "context"

// Provider makes meters.
type Provider interface {
	// Meter returns the meter of a package, whose import path is scope.
	Meter(scope string) Meter
}

// Meter makes instruments. Instruments with the same name are one metric.
type Meter interface {
	// Counter returns a counter. Labels are pairs of name and value that apply to
	// everything it counts.
	Counter(name, description string, labels ...string) Counter
	// Histogram returns a histogram whose buckets have these upper bounds.
	Histogram(name, description string, bounds []float64) Histogram
	// Gauges registers gauges. read returns their values, in the same order; it is called
	// for each reading of the metrics until stop is called.
	Gauges(read func(context.Context) ([]int64, error), gauges ...Gauge) (stop func())
}

// Counter counts.
type Counter interface {
	Add(ctx context.Context, n int64)
}

// Histogram sorts values into buckets.
type Histogram interface {
	Record(ctx context.Context, value float64)
}

// Gauge is a figure that can rise and fall.
type Gauge struct{ Name, Description string }

// Of returns the meter of a package, or one that measures nothing if the provider is nil.
func Of(p Provider, scope string) Meter {
	if p == nil {
		return none{}
	}
	return p.Meter(scope)
}

// none measures nothing.
type none struct{}

func (none) Counter(string, string, ...string) Counter     { return none{} }
func (none) Histogram(string, string, []float64) Histogram { return none{} }
func (none) Add(context.Context, int64)                    {}
func (none) Record(context.Context, float64)               {}
func (none) Gauges(func(context.Context) ([]int64, error), ...Gauge) func() {
	return func() {}
}
