package kvstream

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/stet-dev/stet/blob"
)

// Operations, as metrics and failures name them.
const (
	OpGet   = "get_blob"
	OpSet   = "set_blob"
	OpFlush = "flush"
	// OpUnknown is a request of a kind unknown to this release.
	OpUnknown = "unknown"
)

// boundaries range from a store in memory to a peer that times out.
var boundaries = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000}

// instruments measure one side of the stream.
type instruments struct {
	durations map[string]metric.Float64Histogram // by operation
	errors    metric.Int64Counter
	dropped   metric.Int64Counter
}

// newInstruments passes failures of the meter to OpenTelemetry's error handler: a
// store must not fail because measuring fails.
func newInstruments(provider metric.MeterProvider, side string, ops ...string) *instruments {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scope)
	in := &instruments{durations: make(map[string]metric.Float64Histogram, len(ops))}
	for _, op := range ops {
		// No unit: exporters would append it to a name that already has it.
		histogram, err := meter.Float64Histogram("agent_kv."+side+"."+op+".duration_ms",
			metric.WithDescription("Duration in milliseconds."),
			metric.WithExplicitBucketBoundaries(boundaries...))
		if err != nil {
			otel.Handle(err)
			histogram = noop.Float64Histogram{}
		}
		in.durations[op] = histogram
	}
	in.errors = counter(meter, "agent_kv."+side+".errors", "Requests that failed.")
	in.dropped = counter(meter, "agent_kv."+side+".dropped", "Messages that match no request.")
	return in
}

func counter(meter metric.Meter, name, description string) metric.Int64Counter {
	c, err := meter.Int64Counter(name, metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
		return noop.Int64Counter{}
	}
	return c
}

func (in *instruments) record(ctx context.Context, op string, begin time.Time, err error) {
	if histogram, ok := in.durations[op]; ok {
		histogram.Record(ctx, float64(time.Since(begin))/float64(time.Millisecond))
	}
	if err != nil {
		in.errors.Add(ctx, 1, metric.WithAttributes(
			attribute.String("op", op), attribute.String("error", classify(err))))
	}
}

// drop counts a message; it belongs to no request and so to no context.
func (in *instruments) drop(reason string) {
	in.dropped.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", reason)))
}

// classify maps errors to a few names for attributes.
func classify(err error) string {
	for _, c := range []struct {
		err  error
		name string
	}{
		{blob.ErrNotFound, "not_found"}, {blob.ErrInvalidID, "invalid_id"}, {blob.ErrMismatch, "mismatch"},
		{blob.ErrCorrupt, "corrupt"}, {blob.ErrTooLarge, "too_large"}, {blob.ErrClosed, "closed"},
		{ErrNoAnswer, "no_answer"}, {ErrUnexpectedAnswer, "unexpected_answer"}, {ErrUnknownRequest, "unknown_request"},
		{context.Canceled, "cancelled"}, {context.DeadlineExceeded, "cancelled"},
	} {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "other"
}
