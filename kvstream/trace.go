package kvstream

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

const scope = "github.com/stet-dev/stet/kvstream"

func tracerOf(provider trace.TracerProvider) trace.Tracer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(scope)
}

// spanContext returns the span of ctx in wire form, or nil.
func spanContext(ctx context.Context) *agentv1.SpanContext {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return nil
	}
	flags := uint32(sc.TraceFlags())
	out := &agentv1.SpanContext{
		TraceId:    sc.TraceID().String(),
		SpanId:     sc.SpanID().String(),
		TraceFlags: &flags,
	}
	if state := sc.TraceState().String(); state != "" {
		out.TraceState = &state
	}
	return out
}

// maxTraceState is the size that W3C Trace Context requires to be passed on.
const maxTraceState = 512

// remoteSpan reads a peer's span context; malformed input gives an invalid context.
func remoteSpan(in *agentv1.SpanContext) trace.SpanContext {
	traceID, err := trace.TraceIDFromHex(in.GetTraceId())
	if err != nil {
		return trace.SpanContext{}
	}
	spanID, err := trace.SpanIDFromHex(in.GetSpanId())
	if err != nil {
		return trace.SpanContext{}
	}
	config := trace.SpanContextConfig{
		TraceID:    traceID,
		SpanID:     spanID,
		TraceFlags: trace.TraceFlags(in.GetTraceFlags()) & trace.FlagsSampled,
		Remote:     true,
	}
	if text := in.GetTraceState(); len(text) <= maxTraceState {
		// An unreadable list is dropped, as the specification says; the ids are still
		// valid.
		if state, err := trace.ParseTraceState(text); err == nil {
			config.TraceState = state
		}
	}
	return trace.NewSpanContext(config)
}

// startRemote begins a span under the peer's, with a link to the local span in which
// the request arrived.
func startRemote(ctx context.Context, tracer trace.Tracer, name string, in *agentv1.SpanContext) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if remote := remoteSpan(in); remote.IsValid() {
		if local := trace.SpanContextFromContext(ctx); local.IsValid() {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: local}))
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
	}
	return tracer.Start(ctx, name, opts...)
}

// endSpan records the class of a failure. The error itself may hold details that do
// not belong in a trace.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, classify(err))
	}
	span.End()
}
