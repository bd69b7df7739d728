package otelmeter_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stet-dev/stet/meter"
	"github.com/stet-dev/stet/meter/otelmeter"
)

func Example() {
	ctx := context.Background()
	reader := metric.NewManualReader()
	provider := otelmeter.New(metric.NewMeterProvider(metric.WithReader(reader)))

	m := provider.Meter("example.com/cache")
	m.Counter("cache.gets", "Gets.", "source", "memory").Add(ctx, 2)
	m.Counter("cache.gets", "Gets.", "source", "disk").Add(ctx, 3)
	stop := m.Gauges(func(context.Context) ([]int64, error) { return []int64{7}, nil }, meter.Gauge{Name: "cache.blobs"})
	defer stop()

	var read metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &read); err != nil {
		fmt.Println(err)
		return
	}
	for _, found := range read.ScopeMetrics[0].Metrics {
		switch data := found.Data.(type) {
		case metricdata.Sum[int64]:
			fmt.Println(found.Name, "has", len(data.DataPoints), "sources")
		case metricdata.Gauge[int64]:
			fmt.Println(found.Name, data.DataPoints[0].Value)
		}
	}
	// Output:
	// cache.gets has 2 sources
	// cache.blobs 7
}
