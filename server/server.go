package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server/page"
	"github.com/stet-dev/stet/server/streams"
)

// services are all served services.
var services = []string{
	stetv1connect.BlobServiceName, stetv1connect.RowServiceName, stetv1connect.StoreServiceName,
	stetv1connect.ConversationServiceName, stetv1connect.TransferServiceName, stetv1connect.CheckpointServiceName, stetv1connect.CloudAgentServiceName,
	stetv1connect.DocumentServiceName,
	stetv1connect.ThreadServiceName,
	stetv1connect.PageServiceName,
	aiserverv1connect.BackgroundComposerServiceName, agentv1connect.AgentServiceName,
}

// New returns the handler of one store, for the owner of the token. The caller closes
// the store.
func New(db *stet.DB, opts *Options) (http.Handler, error) {
	opts = opts.withDefaults()
	opts.Sign, opts.LocalHooks = signs(opts.Token), true
	g, err := newGate(opts, only(opts.Token))
	if err != nil {
		return nil, err
	}
	where := &places{any: opts.Workspaces == nil}
	if !where.any {
		if where, err = newPlaces(opts.Workspaces, ""); err != nil {
			return nil, err
		}
	}
	handlerOpts, err := opts.handlerOptions(g)
	if err != nil {
		return nil, err
	}
	s := &site{db: db, handler: register(db, opts, g, true, handlerOpts), where: where}
	g.enter = func(context.Context, string) (*site, func(), error) { return s, func() {}, nil }
	meter := access.NewMeter(access.Limits{}, nil)
	g.meter = func(string) *access.Meter { return meter }
	return g.mux(opts, g.shared(orNotFound(opts.Metrics)), func(ctx context.Context) error {
		if _, err := db.Blobs().Has(ctx); err != nil {
			return err
		}
		return opts.ready(ctx)
	}), nil
}

// Server serves the stores of many tenants.
type Server struct {
	handler http.Handler
	pool    *pool
}

// NewTenants returns a server of many stores. verify returns the principal of a
// token; each tenant sees only its own store.
func NewTenants(tenants Tenants, verify func(token string) (access.Principal, error), opts *Options) (*Server, error) {
	if verify == nil {
		return nil, errors.New("a server of tenants needs tokens")
	}
	opts = opts.withDefaults()
	if err := CheckWorkspaces(opts.Workspaces); err != nil {
		return nil, err
	}
	g, err := newGate(opts, verify)
	if err != nil {
		return nil, err
	}
	g.hide = true
	handlerOpts, err := opts.handlerOptions(g)
	if err != nil {
		return nil, err
	}
	p := &pool{
		max: opts.OpenStores, keep: opts.IdleTime, logger: opts.errorLogger(), sites: make(map[string]*site),
		count: func(delta int) { g.metrics.stores.Add(context.Background(), int64(delta)) },
		open: func(ctx context.Context, s *site) (err error) {
			if s.where, err = newPlaces(opts.Workspaces, s.tenant); err != nil {
				return err
			}
			if s.db, err = tenants.Open(ctx, s.tenant); err != nil {
				return err
			}
			s.handler = register(s.db, opts, g, false, handlerOpts)
			return nil
		},
	}
	g.enter = p.enter
	g.meter = meters(opts.Limits, func(ctx context.Context, tenant string) (int64, error) {
		s, leave, err := p.enter(ctx, tenant)
		if err != nil {
			return 0, err
		}
		defer leave()
		return tenants.Usage(ctx, s.db)
	})
	return &Server{handler: g.mux(opts, operator(opts.Token, opts.Metrics), opts.ready), pool: p}, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close closes the stores. No call may be under way.
func (s *Server) Close() error {
	s.pool.end()
	return nil
}

// meters returns a function that gives each tenant its own permanent meter.
func meters(limits access.Limits, usage func(context.Context, string) (int64, error)) func(string) *access.Meter {
	var all sync.Map // tenant → *access.Meter
	return func(tenant string) *access.Meter {
		if m, ok := all.Load(tenant); ok {
			return m.(*access.Meter)
		}
		m, _ := all.LoadOrStore(tenant, access.NewMeter(limits, func(ctx context.Context) (int64, error) { return usage(ctx, tenant) }))
		return m.(*access.Meter)
	}
}

func newGate(opts *Options, verify func(string) (access.Principal, error)) (*gate, error) {
	m, err := newMetrics(opts.MeterProvider)
	if err != nil {
		return nil, err
	}
	guard := newGuard(opts.hosts, verify)
	guard.sign = opts.Sign
	return &gate{
		guard: guard, revoked: newRevocations(guard.who), audit: newAuditing(opts, m),
		streams: streaming(services, isStream), metrics: m, logger: opts.errorLogger(),
		unread: rate.Sometimes{Interval: time.Minute},
		peers:  &peers{max: opts.StreamsPerPeer, open: make(map[string]int)},
		memory: newMemory(opts.AnswerBytes),
		errors: connect.NewErrorWriter(connect.WithRequireConnectProtocolHeader()), calling: connect.NewErrorWriter(),
	}, nil
}

// mux assembles all handlers.
func (g *gate) mux(opts *Options, metrics http.Handler, ready func(context.Context) error) http.Handler {
	root := http.NewServeMux()
	root.Handle("/", orPage(g.calls()))
	for path, handler := range reflection(services) {
		root.Handle(path, g.shared(handler))
	}
	root.Handle("GET /metrics", metrics)
	root.Handle(grpchealth.NewHandler(&health{known: grpchealth.NewStaticChecker(services...), ready: ready},
		codecs(), connect.WithInterceptors(coding{hide: g.hide, logger: g.logger})))
	root.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	root.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			http.Error(w, "the store cannot be read: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte("ok\n"))
	})
	g.mountStreams(root)
	mountPage(root)
	return opts.logged(unstalled(streaming(services, protoreflect.MethodDescriptor.IsStreamingClient), opts.StallTime, g.guard.protect(root)))
}

func orNotFound(h http.Handler) http.Handler {
	if h == nil {
		return http.NotFoundHandler()
	}
	return h
}

// operator serves metrics only with the operator's token, because they name all
// tenants.
func operator(token string, metrics http.Handler) http.Handler {
	verify := only(token)
	if verify == nil || metrics == nil {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := verify(bearer(r)); err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="stet"`)
			http.Error(w, "the operator's token is required", http.StatusUnauthorized)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// register returns the handlers of a store; own means that the server has no other.
func register(db *stet.DB, opts *Options, g *gate, own bool, handlerOpts []connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	add := func(path string, handler http.Handler) { mux.Handle(path, handler) }
	add(stetv1connect.NewBlobServiceHandler(&blobService{db: db, shared: opts.Shared}, handlerOpts...))
	add(stetv1connect.NewRowServiceHandler(&rowService{db: db, audit: g.audit}, handlerOpts...))
	add(stetv1connect.NewStoreServiceHandler(&storeService{db: db, version: opts.Version, own: own}, handlerOpts...))
	add(stetv1connect.NewConversationServiceHandler(&conversationService{db: db}, handlerOpts...))
	add(stetv1connect.NewTransferServiceHandler(&transferService{db}, handlerOpts...))
	add(stetv1connect.NewCheckpointServiceHandler(&checkpointService{db: db, settler: newSettler(opts, own)}, handlerOpts...))
	add(stetv1connect.NewPageServiceHandler(page.New(db, describers(db)), handlerOpts...))
	add(stetv1connect.NewCloudAgentServiceHandler(&agentService{db}, handlerOpts...))
	add(stetv1connect.NewDocumentServiceHandler(&documentService{db.Documents().Limited(maxDocument)}, handlerOpts...))
	add(stetv1connect.NewThreadServiceHandler(&threadService{db.Threads().Limited(maxFrame)}, handlerOpts...))
	add(aiserverv1connect.NewBackgroundComposerServiceHandler(&followService{db}, handlerOpts...))
	add(streams.Prefix, streams.New(db.Streams(), g.streamOptions(db, opts)))
	agent := opts.Agent
	if agent == nil {
		agent = noAgent{}
	}
	add(agentv1connect.NewAgentServiceHandler(agent, handlerOpts...))
	return mux
}

// noAgent answers if no agent is configured.
type noAgent struct{}

func (noAgent) Run(context.Context, *connect.BidiStream[agentv1.AgentClientMessage, agentv1.AgentServerMessage]) error {
	return connect.NewError(connect.CodeUnimplemented, errors.New("no agent is configured on this server; start it with --agent"))
}
