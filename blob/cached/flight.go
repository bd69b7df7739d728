package cached

import (
	"context"

	"github.com/stet-dev/stet/blob"
)

// flight is one read of the inner store that any number of readers wait for.
//
// x/sync/singleflight lacks two things: it cannot end a read that has no more
// readers, and it needs a string key, which costs an allocation for every miss.
type flight struct {
	id     blob.ID
	puts   uint64             // Store.puts when it took off
	cancel context.CancelFunc // ends the read
	done   chan struct{}      // closed when data and err are set

	readers int  // waiting; guarded by Store.mu
	sole    bool // one reader only, and not cached; guarded by Store.mu until done

	data []byte
	err  error
}

// join adds a reader. The caller holds Store.mu.
func (f *flight) join() {
	f.readers++
	f.sole = false
}

// takeOffLocked starts a read that goes on while any reader waits. It keeps the
// values of the first reader's context but not its cancellation.
func (s *Store) takeOffLocked(ctx context.Context, id blob.ID) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{id: id, puts: s.puts, cancel: cancel, done: make(chan struct{}), readers: 1, sole: true}
	s.flights[id] = f
	go func() {
		defer cancel()
		data, err := s.inner.Get(ctx, id)
		s.landed(f, data, err)
	}()
	return f
}

// wait returns the result of the flight, or the error of the reader's own context.
func (s *Store) wait(ctx context.Context, f *flight) ([]byte, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		s.leave(f)
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	if f.sole {
		return f.data, nil
	}
	return clone(f.data), nil
}

// leave removes a reader; the last one ends the read, and no other may join it.
func (s *Store) leave(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.readers--; f.readers > 0 {
		return
	}
	if s.flights[f.id] == f {
		delete(s.flights, f.id)
	}
	f.cancel()
}
