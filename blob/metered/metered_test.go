package metered_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/metered"
	"github.com/stet-dev/stet/meter/otelmeter"
)

func TestContract(t *testing.T) {
	provider := otelmeter.New(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	open := func(*testing.T) blob.Store {
		return metered.New(memblob.New(), metered.InMemory, &metered.Options{MeterProvider: provider})
	}
	blobtest.Run(t, open)
	blobtest.RunModel(t, open)
}

// measure returns, for each metric, its points by their attributes: a count for
// counters, the number and the sum of values for histograms.
func measure(t *testing.T, reader *metric.ManualReader) map[string]float64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					got[m.Name+" count"] += float64(p.Count)
					got[m.Name+" sum"] += p.Sum
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					op, _ := p.Attributes.Value("op")
					class, _ := p.Attributes.Value("error")
					got[m.Name+" "+op.AsString()+" "+class.AsString()] = float64(p.Value)
				}
			}
		}
	}
	return got
}

func TestDurationsByOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, reader := t.Context(), metric.NewManualReader()
		inner := blobtest.NewFaulty(memblob.New())
		inner.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: 3 * time.Millisecond} })
		s := metered.New(inner, metered.Remote, &metered.Options{
			MeterProvider: otelmeter.New(metric.NewMeterProvider(metric.WithReader(reader)))})
		a, b := blob.New([]byte("a")), blob.New([]byte("b"))
		local := b
		local.LocalOnly = true
		for i, err := range []error{
			s.Put(ctx, a), s.Put(ctx, a, local), s.Put(ctx), s.Put(ctx, local, local),
			s.PutFrom(ctx, a.ID, bytes.NewReader(a.Data), 1), s.Flush(ctx), second(s.Get(ctx, a.ID)),
			second(s.Get(ctx, b.ID)), second(s.Has(ctx, a.ID)), second(s.Open(ctx, a.ID)),
		} {
			if err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		got := measure(t, reader)
		for op, count := range map[string]float64{
			"get_blob": 2, "set_blob": 4, "set_blob_locally_only": 1, "has_blob": 1, "open_blob": 1, "flush": 1,
		} {
			name := "agent_kv.remote." + op + ".duration_ms"
			if got[name+" count"] != count || got[name+" sum"] != 3*count {
				t.Errorf("%s: got %v calls of %v ms together, want %v of %v", name, got[name+" count"], got[name+" sum"], count, 3*count)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestErrorsByClass(t *testing.T) {
	reader := metric.NewManualReader()
	inner := blobtest.NewFaulty(memblob.New())
	s := metered.New(inner, "My Store!", &metered.Options{MeterProvider: otelmeter.New(metric.NewMeterProvider(metric.WithReader(reader)))})
	for _, err := range []error{
		blob.NotFound(blob.ID{}), blob.NotFound(blob.ID{}), &blob.MismatchError{}, blob.Corrupt(blob.ID{}, "bad"),
		context.Canceled, context.DeadlineExceeded, errors.New("else"),
	} {
		inner.FailNext(blobtest.OpGet, 1, err)
		if _, got := s.Get(t.Context(), blob.ID{}); got != err {
			t.Errorf("get: got %v, want the same error %v", got, err)
		}
	}
	got := measure(t, reader)
	for class, want := range map[string]float64{"not_found": 2, "mismatch": 1, "corrupt": 1, "cancelled": 2, "other": 1} {
		if name := "agent_kv._y__tore_.errors get_blob " + class; got[name] != want {
			t.Errorf("%s: got %v, want %v; all: %v", name, got[name], want, got)
		}
	}
}

// TestPrometheus shows the names under which Prometheus sees the measurements.
func TestPrometheus(t *testing.T) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	s := metered.New(memblob.New(), metered.Cached, &metered.Options{
		MeterProvider: otelmeter.New(metric.NewMeterProvider(metric.WithReader(exporter)))})
	b := blob.New([]byte("content"))
	local := b
	local.LocalOnly = true
	err = errors.Join(s.Put(t.Context(), b), s.Put(t.Context(), local), s.Flush(t.Context()), second(s.Get(t.Context(), b.ID)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), blob.Sum([]byte("secret"))); err == nil {
		t.Fatal("get of an absent blob: got no error")
	}
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		"agent_kv_cached_get_blob_duration_ms_count{",
		"agent_kv_cached_set_blob_duration_ms_bucket{",
		"agent_kv_cached_set_blob_locally_only_duration_ms_sum{",
		"agent_kv_cached_flush_duration_ms_count{",
		`agent_kv_cached_errors_total{error="not_found",op="get_blob",`,
	} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("metrics page lacks %s:\n%s", want, page.Body.String())
		}
	}
	if strings.Contains(page.Body.String(), blob.Sum([]byte("secret")).String()) {
		t.Error("metrics page names a blob")
	}
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	provider := otelmeter.New(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	inner := memblob.New()
	s := metered.New(inner, metered.InMemory, &metered.Options{MeterProvider: provider})
	ctx := t.Context()
	plain := testing.AllocsPerRun(1000, func() { _ = inner.Flush(ctx) })
	measured := testing.AllocsPerRun(1000, func() { _ = s.Flush(ctx) })
	if measured > plain {
		t.Errorf("allocations of a flush: got %v, want %v", measured, plain)
	}
}

func BenchmarkStore(b *testing.B) {
	provider := otelmeter.New(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	blobtest.Bench(b, func(*testing.B) blob.Store {
		return metered.New(memblob.New(), metered.InMemory, &metered.Options{MeterProvider: provider})
	})
}

func TestLayer(t *testing.T) {
	provider := otelmeter.New(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	blobtest.RunLayer(t, func(_ *testing.T, inner blob.Store) blob.Store {
		return metered.New(inner, metered.InMemory, &metered.Options{MeterProvider: provider})
	})
}
