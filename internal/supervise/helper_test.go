package supervise

import "context"

// watching is an observer made of functions, each of which may be nil.
type watching struct {
	started func(pid int)
	quiet   func(paths []string)
	beat    func()
}

func (w watching) Started(_ context.Context, pid int) {
	if w.started != nil {
		w.started(pid)
	}
}

func (w watching) Quiet(_ context.Context, paths []string) {
	if w.quiet != nil {
		w.quiet(paths)
	}
}

func (w watching) Beat(context.Context) {
	if w.beat != nil {
		w.beat()
	}
}
