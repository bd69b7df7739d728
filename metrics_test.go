package stet

import (
	"errors"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/metered"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/meter/otelmeter"
)

// TestDriverIsMeasuredUnderItsName has a store in memory.
func TestDriverIsMeasuredUnderItsName(t *testing.T) {
	reader := metric.NewManualReader()
	blobs := memblob.New()
	db, err := New(t.Context(), Backend{Blobs: blobs, Rows: memkv.New(blobs), Kind: metered.InMemory}, nil,
		&Options{MeterProvider: otelmeter.New(metric.NewMeterProvider(metric.WithReader(reader)))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := blob.New([]byte("hello"))
	if err := errors.Join(db.Blobs().Put(t.Context(), b), db.Blobs().Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Blobs().Get(t.Context(), blob.Sum([]byte("other"))); !errors.Is(err, blob.ErrNotFound) {
		t.Fatal(err)
	}
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			names = append(names, m.Name)
		}
	}
	for _, kind := range []string{metered.InMemory, metered.Cached} {
		for _, op := range []string{"get_blob", "set_blob", "flush"} {
			if name := "agent_kv." + kind + "." + op + ".duration_ms"; !slices.Contains(names, name) {
				t.Errorf("%s is not reported; there are %q", name, names)
			}
		}
	}
}
