package server

import (
	"context"

	"github.com/stet-dev/stet/checkpoint"
)

// settler calls Options.Settle. A nil one settles nothing.
type settler struct {
	run  func(context.Context, *checkpoint.Workspace)
	busy chan struct{} // holds a token while a call runs: a second one must see what it did
}

// newSettler returns the settler of a store; own means that the server has no other. Agents
// work with the workspaces of an owner, not with those of tenants.
func newSettler(opts *Options, own bool) *settler {
	if opts.Settle == nil || !own {
		return nil
	}
	return &settler{run: opts.Settle, busy: make(chan struct{}, 1)}
}

func (s *settler) settle(ctx context.Context, w *checkpoint.Workspace) {
	if s == nil {
		return
	}
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return // whatever follows fails with that
	}
	defer func() { <-s.busy }()
	s.run(ctx, w)
}

// settle opens a workspace only to settle it.
func (s *checkpointService) settle(ctx context.Context, name string) error {
	if s.settler == nil {
		return nil
	}
	return s.inSettled(ctx, name, func(*checkpoint.Workspace) error { return nil })
}
