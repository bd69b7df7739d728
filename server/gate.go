package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/server/streams"
)

// gate admits calls: it identifies the caller, checks scope and limits, and passes
// the call to the site of the tenant and no other.
type gate struct {
	guard   *guard
	streams map[string]bool // procedures that are streams
	meter   func(tenant string) *access.Meter
	enter   func(ctx context.Context, tenant string) (*site, func(), error)
	peers   *peers
	audit   *auditing
	revoked *revocations
	memory  *memory
	metrics *metrics
	logger  *slog.Logger
	unread  rate.Sometimes       // limits log lines about tokens: anyone can cause them
	hide    bool                 // unexpected errors go only to the log
	errors  *connect.ErrorWriter // of requests that name a protocol of calls
	calling *connect.ErrorWriter // of requests for a procedure, where JSON is enough
}

// admit does everything but the call itself. The caller calls leave.
func (g *gate) admit(r *http.Request, needed access.Scope) (s *site, leave func(), err error) {
	who, err := g.guard.who(r)
	if err != nil {
		return nil, nil, g.unauthenticated(r.Context(), err)
	}
	c := callOf(r.Context())
	c.Principal = who
	g.audit.used(r, who)
	c.meter = g.meter(who.Tenant)
	if err := c.meter.Request(); err != nil {
		return nil, nil, g.exhausted(r.Context(), who, err)
	}
	if !who.Scope.Allows(needed) {
		g.metrics.refuse(r.Context(), who.Tenant, "scope")
		return nil, nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("scope %s is required; this token has %s", needed, who.Scope))
	}
	var ends []func()
	leave = func() {
		for _, end := range ends {
			end()
		}
	}
	if g.lasting(r) {
		end, err := g.stream(r, c)
		if err != nil {
			return nil, nil, err
		}
		ends = append(ends, end)
	}
	s, out, err := g.enter(r.Context(), who.Tenant)
	if err != nil {
		leave()
		if errors.Is(err, errCrowded) || errors.Is(err, http.ErrServerClosed) {
			err = connect.NewError(connect.CodeUnavailable, err)
		}
		return nil, nil, coding{hide: g.hide, logger: g.logger}.code(r.Context(), err)
	}
	ends = append(ends, out)
	return s, leave, nil
}

func (g *gate) unauthenticated(ctx context.Context, err error) error {
	if !errors.Is(err, access.ErrDenied) { // cannot read the tokens
		g.metrics.refuse(ctx, "", "tokens-unreadable")
		g.unread.Do(func() { g.logger.Error("cannot check tokens", slog.Any("error", err)) })
		return connect.NewError(connect.CodeUnavailable, errors.New("cannot check tokens at the moment"))
	}
	g.metrics.refuse(ctx, "", "token")
	return connect.NewError(connect.CodeUnauthenticated, errors.New("a valid token is required"))
}

func (g *gate) exhausted(ctx context.Context, who access.Principal, err error) error {
	var limit *access.LimitError
	out := withReasons(connect.NewError(connect.CodeResourceExhausted, err), err)
	if errors.As(err, &limit) {
		g.metrics.refuse(ctx, who.Tenant, limit.Limit)
		out.Meta().Set("Retry-After", limit.RetryAfter())
	}
	return out
}

// stream counts an open stream for its peer and its tenant.
func (g *gate) stream(r *http.Request, c *call) (end func(), err error) {
	left, err := g.peers.enter(peerOf(r))
	if err != nil {
		return nil, g.exhausted(r.Context(), c.Principal, err)
	}
	done, err := c.meter.Stream()
	if err != nil {
		left()
		return nil, g.exhausted(r.Context(), c.Principal, err)
	}
	g.metrics.stream(c.Tenant, 1)
	return func() {
		g.metrics.stream(c.Tenant, -1)
		done()
		left()
	}, nil
}

// calls serves the procedures.
func (g *gate) calls() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known := scopes[r.URL.Path]; known {
			callOf(r.Context()).procedure = r.URL.Path
		}
		s, leave, err := g.admit(r, scopeOf(r.URL.Path))
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		defer leave()
		g.pass(w, r, s)
	})
}

// pass lets the site of a caller answer.
func (g *gate) pass(w http.ResponseWriter, r *http.Request, s *site) {
	patient(w, r)
	if g.lasting(r) {
		watched, left := g.revoked.watch(w, r)
		defer left()
		r = watched
	}
	c := callOf(r.Context())
	c.where, c.memory = s.where, &allowance{memory: g.memory}
	defer c.memory.end() // the answer is written
	s.handler.ServeHTTP(w, r.WithContext(blob.WithReserve(r.Context(), c.memory.reserve)))
}

// lasting reports whether a request may stay open.
func (g *gate) lasting(r *http.Request) bool { return g.streams[r.URL.Path] || streams.Live(r) }

// shared serves what belongs to no tenant, such as reflection, to any caller with a
// token.
func (g *gate) shared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := g.guard.who(r)
		if err != nil {
			g.refuse(w, r, g.unauthenticated(r.Context(), err))
			return
		}
		c := callOf(r.Context())
		c.Principal, c.meter = who, g.meter(who.Tenant)
		if err := c.meter.Request(); err != nil {
			g.refuse(w, r, g.exhausted(r.Context(), who, err))
			return
		}
		end, err := g.stream(r, c) // reflection is a stream
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		defer end()
		patient(w, r)
		watched, left := g.revoked.watch(w, r)
		defer left()
		next.ServeHTTP(w, watched)
	})
}

// statusGone is what logs show for a request whose peer did not wait for the answer; it is
// the status of Connect for that.
const statusGone = 499

// refuse answers with an error in the protocol of the caller.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code := connect.CodeOf(err)
	callOf(r.Context()).code = code.String()
	g.audit.refused(r, code)
	if code == connect.CodeUnauthenticated {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // do not wait for the rest of the request
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="stet"`)
	}
	writer := g.errors
	if _, call := scopes[r.URL.Path]; call {
		writer = g.calling
	}
	if writer.IsSupported(r) {
		_ = writer.Write(w, r, err) // fails only if the peer is gone
		return
	}
	status := map[connect.Code]int{
		connect.CodeUnauthenticated: http.StatusUnauthorized, connect.CodePermissionDenied: http.StatusForbidden,
		connect.CodeResourceExhausted: http.StatusTooManyRequests, connect.CodeUnavailable: http.StatusServiceUnavailable,
		connect.CodeCanceled: statusGone, connect.CodeDeadlineExceeded: http.StatusGatewayTimeout,
	}[code]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	var wire *connect.Error
	text := "this failed"
	if errors.As(err, &wire) {
		text = wire.Message()
		for name, values := range wire.Meta() {
			w.Header()[name] = values
		}
	}
	http.Error(w, text, status)
}

// peers counts open streams by remote address.
type peers struct {
	max int
	mu  sync.Mutex // guards open
	// open has no entry for a peer without streams.
	open map[string]int
}

func (p *peers) enter(host string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[host] >= p.max {
		return nil, access.StreamsExhausted(fmt.Sprintf("the limit of %d open streams from one address is reached; retry after one of them has ended", p.max))
	}
	p.open[host]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[host]--; p.open[host] == 0 {
			delete(p.open, host)
		}
	}, nil
}
