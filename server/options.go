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
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/server/internal/wire"
)

// minCompressed is the least answer that is compressed. An event of a stream is
// smaller: a compressor for each would take most of a busy server's time.
const minCompressed = 1 << 10

// Options shape a server; nil gives the defaults.
type Options struct {
	// Token must come with every call to a server of one store, as a bearer; empty
	// switches that off, for tests only. With tenants it is the
	// operator's: it opens /metrics, and nothing of anybody's.
	Token string
	// Hosts are the values of the Host header that are answered, beside loopback
	// names; others are refused, so that a foreign name that resolves to this
	// machine is of no use.
	Hosts []string
	// Certificate adds the names that it is for to Hosts.
	Certificate *Certificate
	// Version is told to clients.
	Version string
	// Agent answers agent.v1.AgentService/Run; nil answers that there is none.
	Agent agentv1connect.AgentServiceHandler
	// Workspaces are the directories, with what is below them, that clients may
	// have captured and rewound on this machine. With one store, nil allows all but
	// the root of the file system and a home; with tenants, nil allows none. An
	// entry TENANT=DIR is for that tenant only, and {tenant} stands for its name.
	Workspaces []string
	// Limits hold for each tenant; the zero value has none.
	Limits access.Limits
	// StreamsPerPeer is how many streams may be open from one address; 2,000 by
	// default.
	StreamsPerPeer int
	// AnswerBytes is the memory that all answers under way may take together, 256 MiB
	// by default. A call that finds none left waits for it.
	AnswerBytes int64
	// OpenStores is how many tenants' stores may be open, 128 by default, and
	// IdleTime after which one that is not used is closed, five minutes by default.
	OpenStores int
	IdleTime   time.Duration
	// StallTime is how long a peer may keep a write waiting, or the rest of a
	// request; 30 seconds by default.
	StallTime time.Duration
	// Audit gets calls that take something away; nil keeps no log of them.
	Audit *access.Audit
	// Shared says that other servers serve the same stores: blobs are then durable,
	// and seen by all of them, when the call that put them is answered.
	Shared bool
	// Ready tells whether the server can work; nil says always. Its words are told
	// to anybody who asks /readyz.
	Ready func(context.Context) error
	// Code gives errors of the backend their codes, such as UNAVAILABLE where it
	// cannot be reached, or 0 to those that it does not know; nil knows none.
	Code func(error) connect.Code
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

// hosts returns the names that are answered to now.
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

// handlerOptions are those of every procedure. Of the interceptors the first is
// the outermost.
func (o *Options) handlerOptions(g *gate) ([]connect.HandlerOption, error) {
	telemetry := []otelconnect.Option{
		otelconnect.WithPropagator(propagation.TraceContext{}), // W3C
		otelconnect.WithTrustRemote(),                          // the caller's trace goes on here
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
		connect.WithInterceptors(traced, coding{hide: g.hide, logger: o.errorLogger(), known: o.Code}, draining{}, answering{g.memory}, &storing{gate: g}, g.audit),
		connect.WithReadMaxBytes(wire.MaxMessage), connect.WithCompressMinBytes(minCompressed),
		connect.WithCodec(binary{}), connect.WithCodec(text{"json"}), connect.WithCodec(text{"json; charset=utf-8"}),
	}, nil
}
