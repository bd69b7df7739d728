package server

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics counts the work of the gate, by tenant: only the operator can read metrics.
type metrics struct {
	refused metric.Int64Counter
	streams metric.Int64UpDownCounter
	stores  metric.Int64UpDownCounter
	audits  metric.Int64Counter
}

func newMetrics(provider metric.MeterProvider) (*metrics, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter("github.com/stet-dev/stet/server")
	m := &metrics{}
	var errs [4]error
	m.refused, errs[0] = meter.Int64Counter("stet.server.refused", metric.WithDescription("refused calls, by reason"))
	m.streams, errs[1] = meter.Int64UpDownCounter("stet.server.streams", metric.WithDescription("open streams"))
	m.stores, errs[2] = meter.Int64UpDownCounter("stet.server.stores", metric.WithDescription("open stores of tenants"))
	m.audits, errs[3] = meter.Int64Counter("stet.server.audit.failures", metric.WithDescription("results that could not be written to the audit log"))
	return m, errors.Join(errs[:]...)
}

func (m *metrics) refuse(ctx context.Context, tenant, reason string) {
	m.refused.Add(ctx, 1, metric.WithAttributes(attribute.String("tenant", tenant), attribute.String("reason", reason)))
}

func (m *metrics) stream(tenant string, delta int64) {
	m.streams.Add(context.Background(), delta, metric.WithAttributes(attribute.String("tenant", tenant)))
}
