package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/stet-dev/stet/access"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/unary"
)

// target returns what a call removes or replaces, and whether it does.
func target(msg any) (string, bool) {
	switch m := msg.(type) {
	case *stetv1.DeleteConversationRequest:
		return "conversation " + m.GetId(), true
	case *stetv1.CollectRequest:
		return fmt.Sprintf("grace %d s", m.GetGraceSeconds()), !m.GetDryRun()
	case *stetv1.RewindRequest:
		return fmt.Sprintf("workspace %s to %s", m.GetPlan().GetWorkspace(), m.GetPlan().GetRef()), true
	case *stetv1.UndoRequest:
		return "workspace " + m.GetWorkspace(), true
	case *stetv1.RedoRequest:
		return "workspace " + m.GetWorkspace(), true
	case *stetv1.UnpinRequest:
		return strings.TrimSpace("pin " + m.GetName() + " " + m.GetWorkspace()), true
	case *stetv1.ArchiveAgentRequest:
		return "agent " + m.GetId(), true
	case *stetv1.CommitDocumentsRequest:
		return documentsRemoved(m)
	case *stetv1.DeleteThreadRequest:
		return "thread " + m.GetThread(), true
	case *stetv1.PruneThreadsRequest:
		return "threads " + strings.Join(m.GetThreads(), " "), true
	case *stetv1.DeleteRunsRequest:
		return "runs " + strings.Join(m.GetRuns(), " "), true
	}
	return "", false // for raw rows see rowService
}

// documentsRemoved lists what a commit deletes, and reports whether it deletes
// anything.
func documentsRemoved(m *stetv1.CommitDocumentsRequest) (string, bool) {
	removed := []string{"documents of " + m.GetCollection() + ":"}
	for _, prefix := range m.GetDeletePrefixes() {
		removed = append(removed, prefix+"*")
	}
	for _, c := range m.GetChanges() {
		if c.GetDelete() {
			removed = append(removed, c.GetName())
		}
	}
	const most = 10
	if n := len(removed) - 1 - most; n > 0 {
		removed = append(removed[:1+most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(removed, " "), len(removed) > 1
}

// auditing writes destructive calls to the audit log: before they run, so that none
// runs unrecorded, and after. Refused calls get a line, too.
type auditing struct {
	log     *access.Audit // nil: no audit log
	logger  *slog.Logger
	metrics *metrics

	refusals *rate.Limiter // of lines for refused calls: anyone can cause them
	mu       sync.Mutex    // guards what follows
	unnoted  int           // refusals since the last line that were not recorded
	seen     map[string]bool
}

// Limits of lines for refused calls per second and at once, and of remembered pairs
// of token and address.
const (
	refusalRate, refusalBurst = 10, 100
	maxSeen                   = 4096
)

func newAuditing(opts *Options, m *metrics) *auditing {
	return &auditing{
		log: opts.Audit, logger: opts.errorLogger(), metrics: m,
		refusals: rate.NewLimiter(refusalRate, refusalBurst), seen: make(map[string]bool),
	}
}

func (a *auditing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		what, ok := target(unary.Message(req.Any()))
		if !ok {
			return next(ctx, req)
		}
		err = a.around(ctx, req.Spec().Procedure, what, nil, func() (err error) {
			res, err = next(ctx, req)
			return err
		})
		return res, err
	}
}

// around runs a function with lines before and after it. keys are the rows that it is
// about to overwrite or remove.
func (a *auditing) around(ctx context.Context, action, what string, keys []string, do func() error) error {
	c := callOf(ctx)
	if c.meter != nil {
		defer c.meter.Changed()
	}
	if a.log == nil {
		return do()
	}
	begun, err := a.log.Begin(c.Principal, c.request, action, what)
	if err == nil {
		err = a.log.Keys(begun, keys)
	}
	if err != nil {
		a.failed(ctx, err)
		return connect.NewError(connect.CodeUnavailable, errors.New("cannot write the audit log; nothing was done"))
	}
	err = do()
	result := "ok"
	if err != nil {
		result = connect.CodeOf(wireError(err)).String()
	}
	if err := a.log.End(begun, result); err != nil {
		a.failed(ctx, err) // it ran, and its begin line is in the log
	}
	return err
}

// refused records a call that was refused for lack of a valid token or scope. Calls
// beyond a rate are only counted, and the next line has their number.
func (a *auditing) refused(r *http.Request, code connect.Code) {
	if a.log == nil || code != connect.CodeUnauthenticated && code != connect.CodePermissionDenied {
		return
	}
	a.mu.Lock()
	if !a.refusals.Allow() {
		a.unnoted++
		a.mu.Unlock()
		return
	}
	missed := a.unnoted
	a.unnoted = 0
	a.mu.Unlock()
	text := "refused"
	if missed > 0 {
		text = fmt.Sprintf("refused, after %d other refusals", missed)
	}
	a.note(r, text, code.String())
}

// used records the first use of a token from an address since the server started.
func (a *auditing) used(r *http.Request, who access.Principal) {
	if a.log == nil {
		return
	}
	key := who.Token + " " + peerOf(r)
	a.mu.Lock()
	known := a.seen[key]
	if !known {
		if len(a.seen) >= maxSeen {
			clear(a.seen)
		}
		a.seen[key] = true
	}
	a.mu.Unlock()
	if !known {
		a.note(r, "first use of the token from this address", "ok")
	}
}

func (a *auditing) note(r *http.Request, text, result string) {
	c := callOf(r.Context())
	action := c.procedure
	if action == "" {
		action = "other" // a typed path may hold anything, even a token
	}
	err := a.log.Note(access.Record{
		Token: c.Token, Tenant: c.Tenant, Address: peerOf(r), Request: c.request, Action: action, Target: text, Result: result,
	})
	if err != nil {
		a.failed(r.Context(), err)
	}
}

// peerOf returns the address of the peer, without the port.
func peerOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

func (a *auditing) failed(ctx context.Context, err error) {
	a.metrics.audits.Add(ctx, 1)
	a.logger.Error("audit", slog.String("request", callOf(ctx).request), slog.Any("error", err))
}

func (a *auditing) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a *auditing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next // no stream is destructive
}
