package agenttools

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/timeline"
)

// Place is an open store and the workspace that the agent works in.
type Place struct {
	DB *stet.DB
	// Checkpoints is the service that opened Space.
	Checkpoints *checkpoint.Service
	Space       *checkpoint.Workspace
}

// Opener opens the store and the workspace, runs use and closes both. It creates a
// missing store if create is set. Before use, it ends the turns that someone interrupted,
// where agents report that nowhere but in their records. Calls do not overlap.
type Opener func(ctx context.Context, create bool, use func(*Place) error) error

// Options configure Tools. The zero value, and nil, work.
type Options struct {
	// Session is the conversation of the calling session, if the user named it.
	Session string
	// Started is the session in which the agent started the server. The agent may have
	// begun another one since, so a running turn of Agent takes precedence.
	Started string
	// Agent is the process that started the server; zero if unknown.
	Agent checkpoint.Process
	// Version is the version of the program.
	Version string
	// Explain adds hints to errors; nil adds none.
	Explain func(error) error
	// Log receives reports that do not answer a call, such as a line of input that is
	// not a message; nil drops them.
	Log func(format string, args ...any)
}

// Tools are the tools of one agent in one workspace. They are safe for concurrent use;
// calls wait for each other.
type Tools struct {
	open Opener
	opts Options
	turn chan struct{} // holds a token while no call runs

	mu       sync.Mutex
	previews []preview // guarded by mu; the latest last
}

// New returns the tools over the store and workspace that open opens.
func New(open Opener, opts *Options) *Tools {
	t := &Tools{open: open, turn: make(chan struct{}, 1)}
	if opts != nil {
		t.opts = *opts
	}
	t.turn <- struct{}{}
	return t
}

// ErrRefused says that a tool refuses a request. The text says what to do instead.
var ErrRefused = fault.New(fault.Invalid, "not done")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// use runs fn with the open place. A panic of fn becomes an error, so the agent can
// continue.
func (t *Tools) use(ctx context.Context, create bool, fn func(*Place) error) (err error) {
	select {
	case <-t.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() {
		t.turn <- struct{}{}
		if r := recover(); r != nil {
			t.log("panic: %v\n%s", r, debug.Stack())
			err = fmt.Errorf("the tool failed: %v", r)
		}
	}()
	err = t.open(ctx, create, fn)
	if err != nil && t.opts.Explain != nil && !errors.Is(err, ErrRefused) {
		err = t.opts.Explain(err)
	}
	return err
}

func (t *Tools) log(format string, args ...any) {
	if t.opts.Log != nil {
		t.opts.Log(format, args...)
	}
}

func (p *Place) timeline() *timeline.Reader {
	return timeline.New(p.Checkpoints, p.DB.Conversations())
}

// latest returns the newest checkpoint of the workspace, or nil.
func (p *Place) latest(ctx context.Context) (*checkpoint.Record, error) {
	for rec, err := range p.Space.List(ctx, &checkpoint.ListOptions{Limit: 1}) {
		return rec, err
	}
	return nil, nil
}

// look runs fn with the workspace over blobs that are not stored: what it captures is
// compared and discarded.
func (p *Place) look(ctx context.Context, fn func(*checkpoint.Workspace, *unsaved.Store) error) error {
	blobs := unsaved.New(p.DB.Blobs(), nil)
	space, err := p.Checkpoints.Looking(blobs).Open(ctx, p.Space.Path())
	if err != nil {
		return errors.Join(err, blobs.Close())
	}
	return errors.Join(fn(space, blobs), space.Close(), blobs.Close())
}
