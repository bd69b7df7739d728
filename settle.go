package stet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

const (
	// quietTime is how long nothing must have been put before the backlog is
	// worked on, so that a save never competes with it.
	quietTime = time.Second
	// maxBacklog is how much may wait before that no longer counts: a store that is
	// never quiet must not grow by plain content for ever.
	maxBacklog = 256 << 20
	// settlePage is how many blobs are looked at before others get their turn. A pass
	// begins with fewer, so that one that is stopped soon has done something.
	firstPage, settlePage = 16, 128
)

// settleMark is the row that says how far the backlog has been worked on.
var settleMark = keyspace.Setting("settled")

// settler compresses, when there is time, what was stored as it came. Writers
// then pay for the disk and not for the compressor, and what a process left
// undone the next one finds by the mark.
type settler struct {
	store    *compressed.Store
	replacer blob.Replacer // of the store below
	arrivals blob.Arrivals // in the store below
	rows     kv.Store
	shrink   func(context.Context) error // gives room back; nil where nobody can
	pass     chan struct{}               // taken by the one pass at a time

	mu      sync.Mutex // guards the fields below
	backlog int64      // bytes that this process put and has not looked at since
	puts    uint64
	stop    context.CancelFunc // of the goroutine; nil where there is none
	done    chan struct{}      // closed when it has ended
	closed  bool
}

// newSettler returns nil where the store below the compressor cannot exchange
// blobs: they are then compressed at once. The caller sets store and rows.
func newSettler(replacer blob.Replacer, arrivals blob.Arrivals) *settler {
	if replacer == nil || arrivals == nil {
		return nil
	}
	return &settler{replacer: replacer, arrivals: arrivals, pass: make(chan struct{}, 1)}
}

// noticed is told of each content that was stored as it is.
func (s *settler) noticed(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backlog += bytes
	s.puts++
	if s.stop == nil && !s.closed {
		ctx, stop := context.WithCancel(context.Background())
		s.stop, s.done = stop, make(chan struct{})
		go s.run(ctx, s.done)
	}
}

// run works until nothing is left, or the first error: what it does not do, a
// later one does.
func (s *settler) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		s.waitForQuiet(ctx)
		puts := s.count()
		err := s.settle(ctx, true, nil)
		s.mu.Lock()
		if err != nil || s.puts == puts {
			s.stop()
			s.stop = nil
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

func (s *settler) count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts
}

func (s *settler) waitForQuiet(ctx context.Context) {
	for {
		s.mu.Lock()
		puts, full := s.puts, s.backlog >= maxBacklog
		s.mu.Unlock()
		if full {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(quietTime):
		}
		if s.count() == puts {
			return
		}
	}
}

// settle works on everything behind the mark. A polite one makes way when the
// store is used again, unless too much waits.
func (s *settler) settle(ctx context.Context, polite bool, progress func(done int)) error {
	select {
	case s.pass <- struct{}{}:
		defer func() { <-s.pass }()
	case <-ctx.Done(): // another one may take long
		return ctx.Err()
	}
	mark, err := s.mark(ctx)
	if err != nil {
		return err
	}
	done, puts := 0, s.count()
	for page := firstPage; ; page = min(2*page, settlePage) {
		infos, next, err := s.arrivals.Arrived(ctx, mark, page)
		if err != nil {
			return fmt.Errorf("find blobs to settle: %w", err)
		}
		if next == mark {
			s.lookedAt(puts, nil)
			if s.shrink == nil || done == 0 && polite {
				return nil
			}
			return s.shrink(ctx)
		}
		if _, err := s.store.Settle(ctx, s.replacer, infos); err != nil {
			return err
		}
		err = s.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: settleMark, Value: []byte(next)}}})
		if err != nil {
			return fmt.Errorf("note how far blobs are settled: %w", err)
		}
		mark, done = next, done+len(infos)
		if progress != nil {
			progress(done)
		}
		if used := s.lookedAt(puts, infos); polite && used {
			return nil
		}
	}
}

// lookedAt takes blobs, or with nil all that came before the pass, off the
// backlog. It tells whether the store was used meanwhile and the rest can wait.
func (s *settler) lookedAt(puts uint64, infos []blob.Info) (used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range infos {
		s.backlog = max(0, s.backlog-i.Stored)
	}
	used = s.puts != puts
	if infos == nil && !used {
		s.backlog = 0
	}
	return used && s.backlog < maxBacklog
}

// close ends the goroutine. What is left waits for the next process.
func (s *settler) close() {
	s.mu.Lock()
	s.closed = true
	done := s.done
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Settle compresses now what the store keeps as it came, and gives the room back
// to the file system. Nobody needs to call it:
// an open store does that by itself when it is quiet. progress, if set, is told
// how many blobs were looked at.
func (db *DB) Settle(ctx context.Context, progress func(done int)) error {
	if db.settler == nil {
		return nil
	}
	return db.settler.settle(ctx, false, progress)
}

// Unsettled returns how many bytes this process stored that are not compressed
// yet.
func (db *DB) Unsettled() int64 {
	if db.settler == nil {
		return 0
	}
	db.settler.mu.Lock()
	defer db.settler.mu.Unlock()
	return db.settler.backlog
}

// Backlog returns about how many bytes wait to be looked at by Settle, whichever
// process stored them. It stops counting at enough.
func (db *DB) Backlog(ctx context.Context, enough int64) (int64, error) {
	if db.settler == nil {
		return 0, nil
	}
	return db.settler.waiting(ctx, enough)
}

func (s *settler) waiting(ctx context.Context, enough int64) (bytes int64, err error) {
	mark, err := s.mark(ctx)
	for err == nil && bytes < enough {
		infos, next, arrivedErr := s.arrivals.Arrived(ctx, mark, settlePage)
		if arrivedErr != nil {
			return bytes, fmt.Errorf("find blobs to settle: %w", arrivedErr)
		}
		if next == mark {
			break
		}
		for _, i := range infos {
			bytes += i.Stored
		}
		mark = next
	}
	return bytes, err
}

// mark returns how far blobs were looked at.
func (s *settler) mark(ctx context.Context) (string, error) {
	row, err := s.rows.Get(ctx, settleMark)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return "", fmt.Errorf("read how far blobs are settled: %w", err)
	}
	return string(row.Value), nil
}
