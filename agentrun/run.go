package agentrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Run runs the request's action, and then the messages of its queue, until nothing is
// left to do. After a lost connection it reconnects and continues from the latest
// checkpoint. When ctx ends, it tells the server to stop and waits briefly for a last
// checkpoint; the error then wraps ctx.Err().
//
// The error is a failure to save a state, the server's refusal (wrapping the
// transport's error), or ErrConnectionLost after the last attempt, with
// ErrNoCheckpoint if there is nothing to resume from.
func Run(ctx context.Context, t Transport, req Request) (Result, error) {
	if req.Handler == nil || t == nil {
		return Result{}, invalid("run: it needs a transport and a handler")
	}
	req.setDefaults()
	r := &runner{req: req, transport: t, queue: req.Queue}
	if r.queue == nil {
		r.queue = NewQueue()
	}
	defer r.close()
	err := r.run(ctx)
	r.close()
	// Transcripts are written in the background only during the run.
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), transcriptWait)
	defer cancel()
	r.result.Transcript = req.Handler.Wait(waiting)
	return r.result, err
}

// transcriptWait limits the wait for the last transcript.
const transcriptWait = 30 * time.Second

// runner is one call of Run.
type runner struct {
	req       Request
	transport Transport
	queue     *Queue // the request's, or one of our own
	execs     *executions
	stop      context.CancelCauseFunc // ends everything; of the context below
	result    Result
}

func (r *runner) close() {
	if r.execs == nil {
		return
	}
	r.stop(nil)
	r.execs.close()
}

func (r *runner) run(ctx context.Context) error {
	ctx, r.stop = context.WithCancelCause(ctx)
	r.execs = &executions{
		executor: r.req.Executor, ledger: r.req.Ledger, ctx: ctx,
		touched: r.req.Handler.executed, fail: r.fail, runs: make(map[string]*execution),
	}
	action := r.req.Action
	for {
		fromQueue := ""
		if action == nil {
			var err error
			if action, fromQueue, err = r.next(ctx); err != nil {
				return err
			}
		}
		if action == nil {
			if r.result.Turns == 0 && r.req.Action == nil && r.req.Queue == nil {
				return invalid("run: there is neither an action nor a queue")
			}
			return nil
		}
		if err := r.turn(ctx, action, fromQueue); err != nil {
			return err
		}
		r.result.Turns++
		action = nil
		// A server may end a stream with pending calls. A resumed run requests them
		// again.
		if r.req.Ledger != nil && len(r.req.Handler.Latest().GetPendingToolCalls()) == 0 {
			if err := r.req.Ledger.Clear(ctx); err != nil {
				return err
			}
		}
	}
}

// requeue adds the messages of an action to the queue before the action is sent. Once
// a state contains them, they count as processed; until then their outcome is unknown
// and they stay queued.
func (r *runner) requeue(action *agentv1.ConversationAction) *agentv1.ConversationAction {
	action, _ = withMessageID(action)
	user := action.GetUserMessageAction()
	for _, msg := range append(slices.Clone(user.GetPrependUserMessages()), user.GetUserMessage()) {
		if msg.GetMessageId() != "" {
			_, _ = r.queue.Add(msg) // fails only for nil
		}
	}
	return action
}

// next returns the action for the oldest message of the queue, or nil.
func (r *runner) next(ctx context.Context) (*agentv1.ConversationAction, string, error) {
	if err := r.queue.markContained(ctx, r.req.Handler); err != nil {
		return nil, "", err
	}
	msg := r.queue.next()
	if msg == nil {
		return nil, "", nil
	}
	return messageAction(msg), msg.MessageId, nil
}

// turn runs an action to its end, on as many streams as needed.
func (r *runner) turn(ctx context.Context, action *agentv1.ConversationAction, fromQueue string) (err error) {
	defer func() { err = errors.Join(err, r.req.Handler.endTurn(ctx)) }()
	action, message := withMessageID(action)
	if err := r.req.checkSize(action); err != nil {
		return err
	}
	if action.GetResumeAction() != nil && r.req.Handler.Latest() == nil {
		return fmt.Errorf("resume: %w", ErrNoCheckpoint)
	}
	if action.GetResumeAction() == nil {
		if err := r.req.Handler.captureBefore(ctx, keyableID(message)); err != nil {
			return err
		}
	}
	if err := r.attempts(ctx, action, message); err != nil {
		return err
	}
	if message == "" {
		return nil
	}
	has, err := r.req.Handler.Contains(ctx, message)
	if err != nil {
		return err
	}
	if !has[0] {
		return fmt.Errorf("message %s: %w", message, ErrNotTaken)
	}
	if fromQueue != "" {
		r.queue.MarkProcessed(fromQueue)
	}
	return nil
}

func (r *runner) attempts(ctx context.Context, action *agentv1.ConversationAction, message string) error {
	begun := r.req.Handler.Count()
	for failed := 0; ; {
		before := r.req.Handler.Count()
		now, err := r.action(ctx, action, message, begun)
		if err != nil {
			return err
		}
		err = r.stream(ctx, now)
		r.result.Checkpoints += r.req.Handler.Count() - before
		switch {
		case ctx.Err() != nil:
			return r.stopped(ctx)
		case err == nil:
			return nil
		case !errors.Is(err, ErrConnectionLost):
			return err
		}
		if r.req.Handler.Count() > before {
			failed = 0
		}
		failed++
		if failed > r.req.Attempts {
			return r.givenUp(failed, err)
		}
		r.req.OnResume(failed, err)
		select {
		case <-time.After(r.req.pause(failed)):
			r.result.Resumed++
		case <-ctx.Done():
			return r.stopped(ctx)
		}
	}
}

// action returns the action for a new stream: a resumption if a state contains the
// message, else the action again.
func (r *runner) action(ctx context.Context, action *agentv1.ConversationAction, message string, begun int) (*agentv1.ConversationAction, error) {
	taken := r.req.Handler.Count() > begun
	if message != "" {
		has, err := r.req.Handler.Contains(ctx, message)
		if err != nil {
			return nil, err
		}
		taken = has[0]
	}
	if taken {
		return Resume(), nil
	}
	return proto.CloneOf(action), nil
}

// stopped returns why the run was ended: by the caller, or because a call could not
// be recorded.
func (r *runner) stopped(ctx context.Context) error {
	var failed *failure
	if errors.As(context.Cause(ctx), &failed) {
		return fmt.Errorf("run stopped: %w", failed.err)
	}
	return fmt.Errorf("run cancelled: %w", ctx.Err())
}

// failure is the cause of a context that we ended ourselves after a failure on this
// side.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

func (r *runner) fail(err error) { r.stop(&failure{err}) }

func (r *runner) givenUp(tries int, err error) error {
	if r.req.Handler.Latest() == nil {
		return fmt.Errorf("run failed %d times: %w: %w", tries, ErrNoCheckpoint, err)
	}
	return fmt.Errorf("run failed %d times since the last checkpoint: %w", tries, err)
}
