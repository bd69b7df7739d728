package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/access"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// target returns what a call takes away, and whether it takes away anything.
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
		return "pin " + m.GetName(), true
	case *stetv1.ArchiveAgentRequest:
		return "agent " + m.GetId(), true
	case *stetv1.CommitRequest:
		rows, ranges := len(m.GetDelete()), len(m.GetDeleteRange())
		return fmt.Sprintf("%d rows, %d ranges of rows", rows, ranges), rows+ranges > 0
	}
	return "", false
}

// auditing writes calls that take something away to the audit log: before they
// are done, so that none is done unseen, and after.
type auditing struct {
	log     *access.Audit
	logger  *slog.Logger
	metrics *metrics
	known   func(error) connect.Code // of the backend's errors; may be nil
}

func (a *auditing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		what, ok := target(req.Any())
		if !ok {
			return next(ctx, req)
		}
		c := callOf(ctx)
		if c.meter != nil {
			defer c.meter.Changed()
		}
		if a.log == nil {
			return next(ctx, req)
		}
		begun, err := a.log.Begin(c.Principal, c.request, req.Spec().Procedure, what)
		if err != nil {
			a.failed(ctx, err)
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("nothing was done: the audit log cannot be written"))
		}
		res, err := next(ctx, req)
		result := "ok"
		if err != nil {
			result = connect.CodeOf(backendError(err, a.known)).String()
		}
		if err := a.log.End(begun, result); err != nil {
			a.failed(ctx, err) // it is done, and its beginning is in the log
		}
		return res, err
	}
}

func (a *auditing) failed(ctx context.Context, err error) {
	a.metrics.audits.Add(ctx, 1)
	a.logger.Error("audit", slog.String("request", callOf(ctx).request), slog.Any("error", err))
}

func (a *auditing) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a *auditing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next // none of the streams takes anything away
}
