package metered_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/metered"
	"github.com/stet-dev/stet/meter/otelmeter"
)

func Example() {
	ctx := context.Background()
	reader := metric.NewManualReader()
	store := metered.New(memblob.New(), metered.InMemory, &metered.Options{
		MeterProvider: otelmeter.New(metric.NewMeterProvider(metric.WithReader(reader))),
	})
	if err := store.Put(ctx, blob.New([]byte("hello"))); err != nil {
		fmt.Println(err)
		return
	}

	var rm metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &rm); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range rm.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Output: agent_kv.in_memory.set_blob.duration_ms
}
