package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/web"
)

// maxMessage bounds one message, before it is parsed.
const maxMessage = 4 << 20

// Options shape a server; nil gives the defaults.
type Options struct {
	// Token must come with every call, as a bearer or a cookie. Empty switches
	// that off, for tests only.
	Token string
	// Hosts are the values of the Host header that are answered, beside loopback
	// names; others are refused, so that a foreign name that resolves to this
	// machine is of no use.
	Hosts []string
	// Version is told to clients.
	Version string
	// Agent answers agent.v1.AgentService/Run; nil leaves that service out.
	Agent agentv1connect.AgentServiceHandler
	// Metrics serves /metrics; nil serves none.
	Metrics http.Handler
	// Logger gets one line for each call, without secrets; nil logs nothing.
	Logger *slog.Logger
	// MeterProvider and TracerProvider receive telemetry; nil means
	// OpenTelemetry's global ones.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

// New returns the handler of a store.
func New(db *stet.DB, opts *Options) (http.Handler, error) {
	if opts == nil {
		opts = &Options{}
	}
	interceptors, err := opts.interceptors()
	if err != nil {
		return nil, err
	}
	api := http.NewServeMux()
	names := register(api, db, opts, interceptors, connect.WithReadMaxBytes(maxMessage))
	reflector := grpcreflect.NewStaticReflector(names...)
	api.Handle(grpcreflect.NewHandlerV1(reflector))
	api.Handle(grpcreflect.NewHandlerV1Alpha(reflector))
	if opts.Metrics != nil {
		api.Handle("GET /metrics", opts.Metrics)
	}
	guard := newGuard(opts)
	root := http.NewServeMux()
	root.Handle("/", guard.authorize(api))
	root.HandleFunc("POST /login", guard.login)
	root.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker(names...)))
	root.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	root.HandleFunc("GET /readyz", ready(db))
	page := guard.orLogin(web.Handler(db))
	root.Handle("GET /{$}", page)
	root.Handle("GET /c/{id}", page)
	root.Handle("GET /assets/", web.Assets())
	return opts.logged(guard.protect(root)), nil
}

// register adds every service and returns their names.
func register(mux *http.ServeMux, db *stet.DB, opts *Options, handlerOpts ...connect.HandlerOption) []string {
	add := func(path string, handler http.Handler) { mux.Handle(path, handler) }
	add(stetv1connect.NewBlobServiceHandler(&blobService{db}, handlerOpts...))
	add(stetv1connect.NewRowServiceHandler(&rowService{db}, handlerOpts...))
	add(stetv1connect.NewStoreServiceHandler(&storeService{db: db, version: opts.Version}, handlerOpts...))
	add(stetv1connect.NewConversationServiceHandler(&conversationService{db: db}, handlerOpts...))
	add(stetv1connect.NewCheckpointServiceHandler(&checkpointService{db}, handlerOpts...))
	add(stetv1connect.NewCloudAgentServiceHandler(&agentService{db}, handlerOpts...))
	add(aiserverv1connect.NewBackgroundComposerServiceHandler(&followService{db}, handlerOpts...))
	names := []string{
		stetv1connect.BlobServiceName, stetv1connect.RowServiceName,
		stetv1connect.StoreServiceName, stetv1connect.ConversationServiceName,
		stetv1connect.CheckpointServiceName, stetv1connect.CloudAgentServiceName,
		aiserverv1connect.BackgroundComposerServiceName,
	}
	if opts.Agent != nil {
		add(agentv1connect.NewAgentServiceHandler(opts.Agent, handlerOpts...))
		names = append(names, agentv1connect.AgentServiceName)
	}
	return names
}

func (o *Options) interceptors() (connect.HandlerOption, error) {
	var telemetry []otelconnect.Option
	if o.MeterProvider != nil {
		telemetry = append(telemetry, otelconnect.WithMeterProvider(o.MeterProvider))
	}
	if o.TracerProvider != nil {
		telemetry = append(telemetry, otelconnect.WithTracerProvider(o.TracerProvider))
	}
	otel, err := otelconnect.NewInterceptor(telemetry...)
	if err != nil {
		return nil, err
	}
	return connect.WithInterceptors(otel, coding{}), nil
}

// ready answers whether the store can be read.
func ready(db *stet.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := db.Blobs().Has(r.Context()); err != nil {
			http.Error(w, "the store cannot be read", http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte("ok\n"))
	}
}

// Serve answers on a listener until ctx is done, then lets calls that are under
// way finish for a while. HTTP/2 works without TLS too, since streams need it.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	srv := &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return streams },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Streams never end by themselves: followers are told, and come back later.
	time.AfterFunc(500*time.Millisecond, endStreams)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		return errors.Join(err, srv.Close())
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
