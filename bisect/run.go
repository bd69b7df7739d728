package bisect

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Errors of a search that cannot begin.
var (
	// ErrGoodEnd says that the first state is not good.
	ErrGoodEnd = fault.New(fault.Invalid, "the good end is bad")
	// ErrBadEnd says that the last state is not bad.
	ErrBadEnd = fault.New(fault.Invalid, "the bad end is good")
	// ErrSkippedEnd says that one of the ends cannot be tested.
	ErrSkippedEnd = fault.New(fault.Invalid, "one of the ends cannot be tested")
	// ErrTooFew says that there is nothing to search in.
	ErrTooFew = fault.New(fault.Invalid, "both ends are the same state")
)

// Options configure Run.
type Options struct {
	// Keys identify the states: states with equal keys share the verdict of one test.
	// The first is the good end, the last the bad end.
	Keys []string
	// Jobs is how many tests run at once; 0 means 1.
	Jobs int
	// Tested is called after each test, from one goroutine at a time.
	Tested func(i int, v Verdict)
}

// Test tests a state. Its context is done when the verdict is no longer wanted. An error
// ends the search.
type Test func(ctx context.Context, i int) (Verdict, error)

// Run tests both ends and then searches between them. When it returns, no test is running.
func Run(ctx context.Context, opts Options, test Test) (Found, error) {
	n := len(opts.Keys)
	if n < 2 || opts.Keys[0] == opts.Keys[n-1] {
		return Found{}, ErrTooFew
	}
	r := &runner{opts: opts, test: test, known: make(map[string]Verdict), running: make(map[int]context.CancelFunc), ended: make(chan ended)}
	r.opts.Jobs = max(1, opts.Jobs)
	defer r.stop()
	if err := r.ends(ctx); err != nil {
		return Found{Tests: r.tests}, err
	}
	s := New(n)
	for {
		for i := s.good + 1; i < s.bad; i++ { // others may have the same content
			s.Report(i, r.known[opts.Keys[i]])
		}
		if found, done := s.Found(); done {
			found.Tests = r.tests
			return found, nil
		}
		r.cancel(func(i int) bool { return s.Wanted(i) })
		for _, i := range s.Next(r.opts.Jobs-len(r.running)+r.wanted(s), r.list(s)...) {
			r.start(ctx, i)
		}
		if err := r.await(ctx); err != nil {
			return Found{Tests: r.tests}, err
		}
	}
}

// ended is a test that has ended.
type ended struct {
	i   int
	v   Verdict
	err error
}

type runner struct {
	opts    Options
	test    Test
	known   map[string]Verdict
	running map[int]context.CancelFunc
	ended   chan ended
	tests   int
}

// ends tests both ends.
func (r *runner) ends(ctx context.Context) error {
	last := len(r.opts.Keys) - 1
	waiting := []int{last, 0}
	for len(waiting)+len(r.running) > 0 {
		for len(waiting) > 0 && len(r.running) < r.opts.Jobs {
			r.start(ctx, waiting[0])
			waiting = waiting[1:]
		}
		if err := r.await(ctx); err != nil {
			return err
		}
		if r.known[r.opts.Keys[last]] == Good {
			return ErrBadEnd
		}
	}
	first := r.known[r.opts.Keys[0]]
	switch {
	case first == Bad:
		return ErrGoodEnd
	case first == Skip:
		return fmt.Errorf("%w: the good one", ErrSkippedEnd)
	case r.known[r.opts.Keys[last]] == Skip:
		return fmt.Errorf("%w: the bad one", ErrSkippedEnd)
	}
	return nil
}

func (r *runner) start(ctx context.Context, i int) {
	ctx, r.running[i] = context.WithCancel(ctx)
	r.tests++
	go func() {
		v, err := r.test(ctx, i)
		r.ended <- ended{i, v, err}
	}()
}

// await takes the result of a test. It ignores the results of tests that were
// stopped.
func (r *runner) await(ctx context.Context) error {
	e := <-r.ended
	cancel := r.running[e.i]
	delete(r.running, e.i)
	stopped := cancel == nil
	if !stopped {
		cancel()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case stopped:
		return nil
	case e.err != nil:
		return e.err
	case e.v != Good && e.v != Bad && e.v != Skip:
		return errors.New("a test gave no verdict")
	}
	r.known[r.opts.Keys[e.i]] = e.v
	if r.opts.Tested != nil {
		r.opts.Tested(e.i, e.v)
	}
	return nil
}

// cancel stops the tests that are not wanted.
func (r *runner) cancel(wanted func(int) bool) {
	for i, cancel := range r.running {
		if cancel != nil && !wanted(i) {
			cancel()
			r.running[i] = nil // it is still at work
		}
	}
}

// list returns the running tests that count.
func (r *runner) list(s *Search) []int {
	var out []int
	for i := range r.running {
		if s.Wanted(i) {
			out = append(out, i)
		}
	}
	return out
}

func (r *runner) wanted(s *Search) int { return len(r.list(s)) }

// stop ends all tests.
func (r *runner) stop() {
	for _, cancel := range r.running {
		if cancel != nil {
			cancel()
		}
	}
	for range r.running {
		<-r.ended
	}
}
