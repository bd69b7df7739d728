// Package lane orders the writers of logs that are kept in rows, and lets their readers
// wait.
//
// A log is a record and the rows that it counts. A writer reads the record, adds rows
// and commits both, and the commit fails if another writer was faster. Writers of one
// process that take turns do not fail each other; a writer of another process makes a
// commit fail, and Retry repeats it:
//
//	l := lanes.Enter(name)
//	defer lanes.Leave(l)
//	if err := l.Begin(ctx); err != nil { … }
//	defer l.End()
//	err := lane.Retry(ctx, func() error { … read, then commit … })
//
// A reader that has everything waits for a hint of the rows, and looks again from time to
// time, because hints can be lost. The followers of a log do that together, with Tails. What
// is read and written is left to the callers.
package lane

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stet-dev/stet/kv"
)

// Set holds the lanes of a store by name. The zero value keeps no lane that is not in
// use. It is safe for concurrent use.
type Set[T any] struct {
	// Keep is how many lanes are kept, used or not, with what their values cache.
	Keep int

	mu  sync.Mutex // guards all, and users of every lane
	all map[string]*Lane[T]
}

// Lane serializes the writers of one log in this process. Its value is for the caller,
// which guards it.
type Lane[T any] struct {
	Name  string
	Value T

	users int
	turn  chan struct{} // holds a value during a write
}

// Enter returns the lane of a name. The caller calls Leave.
func (s *Set[T]) Enter(name string) *Lane[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[name]
	if l == nil {
		if s.all == nil {
			s.all = make(map[string]*Lane[T])
		}
		s.evictLocked() // before the unused new one is added
		l = &Lane[T]{Name: name, turn: make(chan struct{}, 1)}
		s.all[name] = l
	}
	l.users++
	return l
}

// Leave ends the use of a lane.
func (s *Set[T]) Leave(l *Lane[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users == 0 && len(s.all) > s.Keep {
		delete(s.all, l.Name)
	}
}

// evictLocked makes room for one more by dropping unused lanes in any order: what they
// cache can be read again.
func (s *Set[T]) evictLocked() {
	for name, l := range s.all {
		if len(s.all) < s.Keep {
			return
		}
		if l.users == 0 {
			delete(s.all, name)
		}
	}
}

// Begin waits for the turn to write; End passes it on.
func (l *Lane[T]) Begin(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End ends the turn that Begin returned with.
func (l *Lane[T]) End() { <-l.turn }

// attempts is how often a commit that lost against another process is retried. Each
// loss means that another writer succeeded.
const attempts = 100

// Retry calls write until it does not fail with kv.ErrConflict, with short random waits
// between, and gives up after many attempts. The writer reads its rows each time.
func Retry(ctx context.Context, write func() error) error {
	var err error
	for i := range attempts {
		if err = write(); !errors.Is(err, kv.ErrConflict) {
			return err
		}
		if err := Pause(ctx, rand.N(min(time.Millisecond<<min(i, 6), 50*time.Millisecond))); err != nil {
			return err
		}
	}
	return err
}

// Pause waits for a time, or until ctx is done.
func Pause(ctx context.Context, d time.Duration) error { return Wait(ctx, nil, d) }

// Wait waits for a hint that rows may have changed, and at most for d, which is when the
// reader looks again without one.
func Wait(ctx context.Context, hints <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-hints:
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
