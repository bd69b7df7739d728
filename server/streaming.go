package server

import (
	"context"
	"log/slog"
	"net/http"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/server/streams"
	"github.com/stet-dev/stet/subscription"
)

// mountStreams adds the addresses of streams. A preflight request of a browser has no
// token yet.
func (g *gate) mountStreams(root *http.ServeMux) {
	root.Handle(streams.Prefix, g.streamCalls())
	root.HandleFunc("OPTIONS "+streams.Prefix, func(w http.ResponseWriter, _ *http.Request) { streams.Preflight(w) })
}

// streamCalls admits requests for streams, whose meaning depends on the method, not
// on the address.
func (g *gate) streamCalls() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		needed := access.Read
		if streams.Writes(r) {
			needed = access.Write
		}
		callOf(r.Context()).procedure = knownMethod(r.Method) + " " + streams.Prefix
		s, leave, err := g.admit(r, needed)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		defer leave()
		if drain, ok := drainOf(r.Context()); ok && streams.Live(r) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(drain, cancel)()
			r = r.WithContext(ctx)
		}
		g.pass(w, r, s)
	})
}

// streamOptions connect the handler of a store's streams to limits, audit log and error
// table.
func (g *gate) streamOptions(db *stet.DB, opts *Options) *streams.Options {
	counting, errors := &storing{gate: g}, coding{hide: g.hide, logger: g.logger}
	out := &streams.Options{
		Wait: opts.StreamWait, LocalHooks: opts.LocalHooks,
		Count: func(ctx context.Context, bytes int64) (func(), error) {
			if callOf(ctx).meter == nil {
				return func() {}, nil
			}
			return counting.count(ctx, bytes)
		},
		Remove: func(ctx context.Context, what string, do func() error) error {
			return g.audit.around(ctx, callOf(ctx).procedure, what, nil, do)
		},
		Sent: func(ctx context.Context) { callOf(ctx).memory.shrink(0) },
		Fail: func(w http.ResponseWriter, r *http.Request, err error) {
			if drain, ok := drainOf(r.Context()); ok && drain.Err() != nil && r.Context().Err() != nil {
				err = connect.NewError(connect.CodeUnavailable, errStopping)
			}
			g.refuse(w, r, errors.code(r.Context(), err))
		},
		Owner: func(ctx context.Context) string { return callOf(ctx).Token },
		Note:  func(err error) { g.logger.Error("subscriptions", slog.Any("error", err)) },
	}
	if opts.Sign != nil {
		out.Subscriptions = subscription.New(db.Streams(), db.Rows(), nil)
		out.Sign = func(owner string, message []byte) ([]byte, error) {
			_, code, err := opts.Sign(owner, message)
			return code, err
		}
	}
	return out
}
