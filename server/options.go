package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/server/internal/wire"
)

// minCompressed is the smallest answer that is compressed. Events of a stream are
// smaller: compressing each would take most of a busy server's time.
const minCompressed = 1 << 10

// Options configure a server; nil gives the defaults.
type Options struct {
	// Token is the bearer token required for every call to a server of one store; empty
	// disables that, for tests only. With tenants it is the operator's token: it opens
	// /metrics, but no data of tenants.
	Token string
	// Hosts are the accepted values of the Host header, besides loopback names;
	// others are refused, which prevents DNS rebinding.
	Hosts []string
	// Certificate adds its names to Hosts.
	Certificate *Certificate
	// Version is reported to clients.
	Version string
	// Agent answers agent.v1.AgentService/Run; nil answers with Unimplemented.
	Agent agentv1connect.AgentServiceHandler
	// Workspaces are the directories, with everything below them, that clients may
	// capture and rewind on this machine. With one store, nil allows all except the
	// root of the file system and a home; with tenants, nil allows none. An entry
	// TENANT=DIR is only for that tenant, and {tenant} is replaced by its name.
	Workspaces []string
	// Settle is called before a call captures or changes files of a workspace, plans to, or
	// tells who wrote them, so that turns end that nobody reported the end of. It may take
	// checkpoints, and keeps its errors to itself. Nil settles nothing; a server of tenants
	// never calls it. Calls do not overlap.
	Settle func(context.Context, *checkpoint.Workspace)
	// Limits apply to each tenant; the zero value has none.
	Limits access.Limits
	// StreamsPerPeer is how many streams may be open from one address; 2,000 by
	// default.
	StreamsPerPeer int
	// AnswerBytes limits the memory of all running answers together, 256 MiB by
	// default. A call beyond it waits.
	AnswerBytes int64
	// OpenStores is how many tenants' stores may be open, 128 by default, and
	// IdleTime how long an unused one stays open, five minutes by default.
	OpenStores int
	IdleTime   time.Duration
	// StallTime is how long a peer may block a write, or delay the rest of a request;
	// 30 seconds by default.
	StallTime time.Duration
	// StreamWait is how long a read of a stream waits for data, 20 seconds by default. A
	// proxy in front must wait longer.
	StreamWait time.Duration
	// Sign signs on behalf of the token with an id, as access.Tokens.Sign does. Without
	// it a server of tenants serves no subscriptions to streams; a server with a single
	// token signs by itself.
	Sign func(token string, message []byte) (access.Principal, []byte, error)
	// LocalHooks allows tenants to send the wakes of subscriptions to addresses of the
	// server's machine. The owner of a single store always may.
	LocalHooks bool
	// Audit records destructive calls; nil keeps no log.
	Audit *access.Audit
	// Shared means that other servers serve the same stores: blobs are then durable,
	// and visible to all of them, when the call that put them returns.
	Shared bool
	// Ready reports whether the server can work; nil means always. Anyone can read
	// its error at /readyz.
	Ready func(context.Context) error
	// Metrics serves /metrics; nil serves none.
	Metrics http.Handler
	// Logger gets one line for each call, without secrets; nil logs nothing.
	Logger *slog.Logger
	// MeterProvider and TracerProvider receive telemetry; nil means
	// OpenTelemetry's global ones.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

func (o *Options) withDefaults() *Options {
	var out Options
	if o != nil {
		out = *o
	}
	set := func(v *time.Duration, standard time.Duration) {
		if *v <= 0 {
			*v = standard
		}
	}
	set(&out.StallTime, stallTime)
	set(&out.IdleTime, 5*time.Minute)
	if out.StreamsPerPeer <= 0 {
		out.StreamsPerPeer = 2000
	}
	if out.AnswerBytes <= 0 {
		out.AnswerBytes = 256 << 20
	}
	if out.OpenStores <= 0 {
		out.OpenStores = 128
	}
	return &out
}

// hosts returns the currently accepted host names.
func (o *Options) hosts() []string {
	if o.Certificate == nil {
		return o.Hosts
	}
	return append(o.Certificate.Hosts(), o.Hosts...)
}

func (o *Options) errorLogger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// handlerOptions are the options of every procedure. The first interceptor is the
// outermost.
func (o *Options) handlerOptions(g *gate) ([]connect.HandlerOption, error) {
	telemetry := []otelconnect.Option{
		otelconnect.WithPropagator(propagation.TraceContext{}), // W3C
		otelconnect.WithTrustRemote(),                          // continue the caller's trace
	}
	if o.MeterProvider != nil {
		telemetry = append(telemetry, otelconnect.WithMeterProvider(o.MeterProvider))
	}
	if o.TracerProvider != nil {
		telemetry = append(telemetry, otelconnect.WithTracerProvider(o.TracerProvider))
	}
	traced, err := otelconnect.NewInterceptor(telemetry...)
	if err != nil {
		return nil, err
	}
	return []connect.HandlerOption{
		connect.WithInterceptors(traced, coding{hide: g.hide, logger: o.errorLogger()}, draining{}, answering{g.memory}, &storing{gate: g}, g.audit),
		connect.WithReadMaxBytes(wire.MaxMessage), connect.WithCompressMinBytes(minCompressed),
		codecs(),
	}, nil
}

// codecs are those of every service.
func codecs() connect.HandlerOption {
	return connect.WithHandlerOptions(connect.WithCodec(binary{}), connect.WithCodec(text{"json"}), connect.WithCodec(text{"json; charset=utf-8"}))
}
