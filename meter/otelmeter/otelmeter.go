// Package otelmeter reports the figures of package meter through OpenTelemetry.
//
//	opts.MeterProvider = otelmeter.Global()        // the provider of the program
//	opts.MeterProvider = otelmeter.New(provider)   // one of its own
//
// It promises that an instrument that OpenTelemetry rejects loses only its own figures:
// the reason goes to OpenTelemetry's error handler.
package otelmeter

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/stet-dev/stet/meter"
)

// New returns a provider that reports to p.
func New(p metric.MeterProvider) meter.Provider { return provider{p} }

// Global returns a provider that reports to OpenTelemetry's global one. Instruments made
// before the program set that provider are connected, too.
func Global() meter.Provider { return New(otel.GetMeterProvider()) }

type provider struct{ metric.MeterProvider }

func (p provider) Meter(scope string) meter.Meter { return instruments{p.MeterProvider.Meter(scope)} }

type instruments struct{ meter metric.Meter }

type counter struct {
	metric.Int64Counter
	options []metric.AddOption // made once, because making them allocates
}

func (c counter) Add(ctx context.Context, n int64) { c.Int64Counter.Add(ctx, n, c.options...) }

type histogram struct{ metric.Float64Histogram }

func (h histogram) Record(ctx context.Context, value float64) { h.Float64Histogram.Record(ctx, value) }

// Counter implements meter.Meter.
func (i instruments) Counter(name, description string, labels ...string) meter.Counter {
	made, err := i.meter.Int64Counter(name, metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
		return counter{Int64Counter: noop.Int64Counter{}}
	}
	c := counter{Int64Counter: made}
	if len(labels) > 1 {
		var attributes []attribute.KeyValue
		for at := 0; at+1 < len(labels); at += 2 {
			attributes = append(attributes, attribute.String(labels[at], labels[at+1]))
		}
		c.options = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
	}
	return c
}

// Histogram implements meter.Meter. It sets no unit: exporters would append it to a name
// that already has it.
func (i instruments) Histogram(name, description string, bounds []float64) meter.Histogram {
	made, err := i.meter.Float64Histogram(name, metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	if err != nil {
		otel.Handle(err)
		return histogram{noop.Float64Histogram{}}
	}
	return histogram{made}
}

// Gauges implements meter.Meter.
func (i instruments) Gauges(read func(context.Context) ([]int64, error), gauges ...meter.Gauge) (stop func()) {
	var made []metric.Int64Observable
	var observed []metric.Observable
	for _, g := range gauges {
		gauge, err := i.meter.Int64ObservableGauge(g.Name, metric.WithDescription(g.Description))
		if err != nil {
			otel.Handle(err)
			return func() {}
		}
		made, observed = append(made, gauge), append(observed, gauge)
	}
	registration, err := i.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		values, err := read(ctx)
		if err != nil {
			return err
		}
		if len(values) != len(made) {
			return fmt.Errorf("%d values were read for %d gauges", len(values), len(made))
		}
		for at, gauge := range made {
			o.ObserveInt64(gauge, values[at])
		}
		return nil
	}, observed...)
	if err != nil {
		otel.Handle(err)
		return func() {}
	}
	return func() {
		if err := registration.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
}
