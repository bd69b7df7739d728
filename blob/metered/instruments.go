package metered

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/stet-dev/stet/blob"
)

type op int

const (
	opGet op = iota
	opSet
	opSetLocally
	opHas
	opOpen
	opFlush
	ops
)

func (o op) String() string {
	return [...]string{"get_blob", "set_blob", "set_blob_locally_only", "has_blob", "open_blob", "flush"}[o]
}

// class is a coarse kind of error; there are few enough to use as an attribute.
type class int

const (
	classNotFound class = iota
	classMismatch
	classCorrupt
	classCancelled
	classOther
	classes
)

func (c class) String() string {
	return [...]string{"not_found", "mismatch", "corrupt", "cancelled", "other"}[c]
}

func classify(err error) class {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return classNotFound
	case errors.Is(err, blob.ErrMismatch):
		return classMismatch
	case errors.Is(err, blob.ErrCorrupt):
		return classCorrupt
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return classCancelled
	}
	return classOther
}

// instruments hold everything that a measurement needs, so that it allocates nothing.
type instruments struct {
	durations [ops]metric.Float64Histogram
	errors    metric.Int64Counter
	options   [ops][classes][]metric.AddOption
}

// boundaries range from a hit in memory to a remote that times out.
var boundaries = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000}

// newInstruments passes failures of the meter to OpenTelemetry's error handler and
// then measures nothing: a store must not fail because measuring does.
func newInstruments(provider metric.MeterProvider, kind string) instruments {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter("github.com/stet-dev/stet/blob/metered")
	var in instruments
	for o := range ops {
		// No unit: exporters would append it to a name that already has it.
		histogram, err := meter.Float64Histogram("agent_kv."+kind+"."+o.String()+".duration_ms",
			metric.WithDescription("Duration in milliseconds."),
			metric.WithExplicitBucketBoundaries(boundaries...))
		if err != nil {
			otel.Handle(err)
			histogram = noop.Float64Histogram{}
		}
		in.durations[o] = histogram
		for c := range classes {
			set := attribute.NewSet(attribute.String("op", o.String()), attribute.String("error", c.String()))
			in.options[o][c] = []metric.AddOption{metric.WithAttributeSet(set)}
		}
	}
	counter, err := meter.Int64Counter("agent_kv."+kind+".errors", metric.WithDescription("Calls that failed."))
	if err != nil {
		otel.Handle(err)
		counter = noop.Int64Counter{}
	}
	in.errors = counter
	return in
}

func (in *instruments) record(ctx context.Context, o op, begin time.Time, err error) {
	in.durations[o].Record(ctx, float64(time.Since(begin))/float64(time.Millisecond))
	if err != nil {
		in.errors.Add(ctx, 1, in.options[o][classify(err)]...)
	}
}

// cleanKind makes a kind part of a valid and readable metric name.
func cleanKind(kind string) string {
	if kind == "" {
		return "store"
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, kind)
}
