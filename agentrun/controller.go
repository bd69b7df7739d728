package agentrun

import (
	"context"
	"sync"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Controller passes the checkpoints of a stream to a handler, one at a time and in
// order. The first error ends it.
type Controller struct {
	handler CheckpointHandler
	work    chan func(context.Context) error
	done    chan struct{} // closed when Run has returned
	close   sync.Once
}

// backlog is how many checkpoints may wait. Beyond it the stream is not read, which
// slows down a server that is faster than the disk.
const backlog = 16

// NewController returns a controller. Run must be called once.
func NewController(handler CheckpointHandler) *Controller {
	return &Controller{handler: handler, work: make(chan func(context.Context) error, backlog), done: make(chan struct{})}
}

// Checkpoint adds a checkpoint. It blocks while too many are queued, and reports
// whether the controller still accepts work.
func (c *Controller) Checkpoint(state *agentv1.ConversationStateStructure) bool {
	return c.add(func(ctx context.Context) error { return c.handler.HandleCheckpoint(ctx, state) })
}

// After calls fn once all earlier checkpoints are saved, in the order of the calls.
// fn must not block.
func (c *Controller) After(fn func()) bool {
	return c.add(func(context.Context) error { fn(); return nil })
}

func (c *Controller) add(fn func(context.Context) error) bool {
	select {
	case c.work <- fn:
		return true
	case <-c.done:
		return false
	}
}

// Close marks the end of the input. It must not be called at the same time as
// Checkpoint or After.
func (c *Controller) Close() { c.close.Do(func() { close(c.work) }) }

// Run does the work until Close, or until something fails or ctx ends, and
// returns why.
func (c *Controller) Run(ctx context.Context) error {
	defer close(c.done)
	for {
		select {
		case fn, ok := <-c.work:
			if !ok {
				return nil
			}
			if err := fn(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
