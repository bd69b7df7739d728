package server_test

import (
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// A caller's trace goes on in the server, as W3C has it.
func TestTracesGoOn(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	address := start(t, &server.Options{Token: token, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for name, opts := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		spans.Reset()
		hc, base := dial(t, address, token).HTTP()
		ctx, info := connect.NewClientContext(t.Context())
		info.RequestHeader().Set("Traceparent", "00-"+trace+"-"+parent+"-01")
		if _, err := stetv1connect.NewConversationServiceClient(hc, base, opts...).List(ctx, &stetv1.ListConversationsRequest{}); err != nil {
			t.Fatal(err)
		}
		got := spans.GetSpans()
		if len(got) != 1 {
			t.Fatalf("%s: %d spans", name, len(got))
		}
		s := got[0]
		if s.SpanContext.TraceID().String() != trace || s.Parent.SpanID().String() != parent || s.Name != "stet.v1.ConversationService/List" {
			t.Errorf("%s: span %q of trace %v below %v", name, s.Name, s.SpanContext.TraceID(), s.Parent.SpanID())
		}
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), token) {
				t.Errorf("%s: %s holds the token", name, a.Key)
			}
		}
	}
	// A malformed trace header is ignored.
	status(t, "POST", address, "/stet.v1.StoreService/Info", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Traceparent", "00-nonsense")
	})
}
