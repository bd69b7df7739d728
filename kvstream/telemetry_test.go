package kvstream_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

func newTracer() (*tracetest.SpanRecorder, *sdktrace.TracerProvider) {
	recorder := tracetest.NewSpanRecorder()
	return recorder, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
}

func TestTheClientsSpansJoinTheServersTrace(t *testing.T) {
	serverSpans, serverTracer := newTracer()
	clientSpans, clientTracer := newTracer()
	local := memblob.New()
	p := join(t, local, &kvstream.Options{TracerProvider: serverTracer}, &kvstream.ServeOptions{TracerProvider: clientTracer})
	ctx, root := serverTracer.Tracer("test").Start(t.Context(), "step of a run")
	must(t, p.Put(ctx, number(1)))
	_, err := p.Get(ctx, number(1).ID)
	must(t, err)
	root.End()
	asked := make(map[trace.SpanID]string)
	for _, span := range serverSpans.Ended() {
		asked[span.SpanContext().SpanID()] = span.Name()
	}
	var names []string
	for _, span := range clientSpans.Ended() {
		names = append(names, span.Name())
		if span.SpanContext().TraceID() != root.SpanContext().TraceID() || !span.Parent().IsRemote() {
			t.Errorf("%s: got parent %v, want the server's trace", span.Name(), span.Parent())
		}
		op := span.Name()[strings.LastIndex(span.Name(), "."):]
		if got := asked[span.Parent().SpanID()]; got != "agent_kv.remote"+op {
			t.Errorf("%s: got parent %q, want the request that it answers", span.Name(), got)
		}
	}
	if got, want := strings.Join(names, " "), "agent_kv.controlled.set_blob agent_kv.controlled.get_blob"; got != want {
		t.Errorf("client's spans: got %q, want %q", got, want)
	}
}

func TestSpanContextsOfStrangers(t *testing.T) {
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for name, c := range map[string]struct {
		in    *agentv1.SpanContext
		joins bool
		state string
	}{
		"good":              {&agentv1.SpanContext{TraceId: traceID, SpanId: spanID, TraceState: proto.String("a=1,b=2")}, true, "a=1,b=2"},
		"none":              {nil, false, ""},
		"empty":             {&agentv1.SpanContext{}, false, ""},
		"short":             {&agentv1.SpanContext{TraceId: traceID[:30], SpanId: spanID}, false, ""},
		"zero span":         {&agentv1.SpanContext{TraceId: traceID, SpanId: "0000000000000000"}, false, ""},
		"not hexadecimal":   {&agentv1.SpanContext{TraceId: strings.Repeat("zz", 16), SpanId: spanID}, false, ""},
		"broken state":      {&agentv1.SpanContext{TraceId: traceID, SpanId: spanID, TraceState: proto.String("=,;")}, true, ""},
		"huge state":        {&agentv1.SpanContext{TraceId: traceID, SpanId: spanID, TraceState: proto.String("a=" + strings.Repeat("x", 2000))}, true, ""},
		"flags of a stream": {&agentv1.SpanContext{TraceId: traceID, SpanId: spanID, TraceFlags: proto.Uint32(1 << 30)}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			// Not sampled by the peer is still recorded here: what counts is the parent.
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.AlwaysSample()))
			ctx, local := provider.Tracer("test").Start(t.Context(), "the client's own")
			defer local.End()
			answers := newWire[agentv1.KvClientMessage](1)
			r := kvstream.NewResponder(answers, memblob.New(), &kvstream.ServeOptions{TracerProvider: provider})
			msg := getRequest(0, make([]byte, 32))
			msg.SpanContext = c.in
			must(t, r.Handle(ctx, msg))
			must(t, r.Close())
			got := spans.Ended()
			if len(got) != 1 {
				t.Fatalf("spans: got %d, want 1", len(got))
			}
			want := local.SpanContext().TraceID().String()
			if c.joins {
				want = traceID
				if links := got[0].Links(); len(links) != 1 || links[0].SpanContext.SpanID() != local.SpanContext().SpanID() {
					t.Errorf("links: got %v, want one to the client's own span", links)
				}
			}
			if id := got[0].SpanContext().TraceID().String(); id != want {
				t.Errorf("trace: got %s, want %s", id, want)
			}
			if state := got[0].SpanContext().TraceState().String(); state != c.state {
				t.Errorf("trace state: got %q, want %q", state, c.state)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	p := join(t, memblob.New(), &kvstream.Options{MeterProvider: provider}, &kvstream.ServeOptions{MeterProvider: provider})
	must(t, p.Put(t.Context(), numbers(3)...))
	_, err := p.Get(t.Context(), number(1).ID)
	must(t, err)
	_, err = p.Get(t.Context(), number(9).ID)
	wantErr(t, "get", err, blob.ErrNotFound)
	must(t, p.Flush(t.Context()))
	p.Deliver(setAnswer(0, ""))
	got := collect(t, reader)
	for name, want := range map[string]int64{
		"agent_kv.remote.set_blob.duration_ms":     3,
		"agent_kv.remote.get_blob.duration_ms":     2,
		"agent_kv.remote.flush.duration_ms":        1,
		"agent_kv.remote.errors":                   1,
		"agent_kv.remote.dropped":                  1,
		"agent_kv.controlled.set_blob.duration_ms": 3,
		"agent_kv.controlled.get_blob.duration_ms": 2,
	} {
		if got[name] != want {
			t.Errorf("%s: got %d, want %d", name, got[name], want)
		}
	}
}

// collect returns how often each instrument was used.
func collect(t *testing.T, reader *metric.ManualReader) map[string]int64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	must(t, reader.Collect(context.Background(), &rm))
	got := make(map[string]int64)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					got[m.Name] += int64(point.Count)
				}
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					got[m.Name] += point.Value
				}
			}
		}
	}
	return got
}
