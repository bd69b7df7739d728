package writethrough

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// item is a remote write that has not succeeded yet. It waits (or is being
// sent), or it has failed.
type item struct {
	id, base blob.ID
	size     int64
	order    uint64   // of the first Put
	waiting  bool     // else it has failed
	suspect  bool     // failed alone, not only as one of many
	gone     bool     // the local store lost it: reported once, not retried
	cause    *failure // of the last attempt
	flushes  []*ticket
}

// failure is why one or more blobs did not reach the remote.
type failure struct{ err error }

// queue is the state of the remote writes. Store.mu guards it.
type queue struct {
	items   map[blob.ID]*item // all of them
	line    []*item           // to be sent, in order
	waiting int               // in line or being sent
	bytes   int64             // of those
	order   uint64
	streak  int  // attempts that failed in a row
	behind  bool // see Options.Behind
	last    *failure
}

// await counts an item as waiting; the caller adds it to line.
func (q *queue) await(it *item) {
	it.waiting, it.gone = true, false
	q.waiting++
	q.bytes += it.size
}

// roomFor admits a blob larger than the whole queue when the queue is empty.
func (q *queue) roomFor(it *item, opts *Options) bool {
	return q.waiting == 0 || q.waiting < opts.MaxItems && q.bytes+it.size <= opts.MaxBytes
}

// enqueue adds a remote write to the queue as soon as there is room.
func (s *Store) enqueue(ctx context.Context, it item) error {
	for {
		wake, err := s.tryEnqueue(&it)
		if wake == nil {
			return err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return fmt.Errorf("wait for the remote to catch up: %w", ctx.Err())
		}
	}
}

// tryEnqueue returns a channel to wait for if there is no room.
func (s *Store) tryEnqueue(it *item) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	old := q.items[it.id]
	switch {
	case s.closed:
		return nil, blob.ErrClosed
	case old != nil && old.waiting:
		return nil, nil
	case q.behind && !q.roomFor(it, &s.opts):
		return nil, nil
	case old == nil && len(q.items)-q.waiting >= s.opts.MaxFailed:
		return nil, fmt.Errorf("%d blobs are waiting for the remote: %w", s.opts.MaxFailed, q.last.err)
	case !q.roomFor(it, &s.opts):
		return s.changed, nil
	}
	if old != nil {
		it = old
	} else {
		q.order++
		it.order = q.order
		q.items[it.id] = it
	}
	q.await(it)
	q.line = append(q.line, it)
	s.changeLocked()
	return nil, nil
}

// next takes the next few small blobs, or one that is large or failed alone, from the
// queue. It returns nil when ctx is done.
func (s *Store) next(ctx context.Context) []*item {
	for {
		batch, wake := s.tryNext()
		if ctx.Err() != nil {
			return nil
		}
		if batch != nil {
			return batch
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// A batch is large enough to be worth the round trip and small enough to hold in
// memory.
const (
	batchItems = 64
	batchBytes = 1 << 20
)

func (s *Store) tryNext() ([]*item, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	if len(q.line) == 0 {
		return nil, s.changed
	}
	n, size := 0, int64(0)
	for n < len(q.line) && n < batchItems {
		it := q.line[n]
		if n > 0 && (it.suspect || q.line[0].suspect || size+it.size > batchBytes) {
			break
		}
		size += it.size
		n++
	}
	batch := slices.Clone(q.line[:n])
	q.line = slices.Delete(q.line, 0, n)
	return batch, nil
}

// After giveUpAfter failed attempts in a row the remote counts as down. Queued items
// then fail without an attempt, so that the time of a Flush does not depend on the
// length of the queue.
const giveUpAfter = 8

// finish records how the attempts to send some items ended.
func (s *Store) finish(cause *failure, items ...*item) {
	if len(items) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	for _, it := range items {
		q.end(it, cause)
	}
	switch {
	case cause == nil:
		q.streak = 0
	case !aboutBlob(cause.err):
		q.streak++
	}
	if q.streak >= giveUpAfter || q.behind && q.streak > 0 {
		untried := &failure{err: fmt.Errorf("not tried after %d failures in a row: %w", q.streak, cause.err)}
		for _, it := range q.line {
			q.end(it, untried)
		}
		q.line, q.streak = nil, 0
	}
	s.changeLocked()
}

func (q *queue) end(it *item, cause *failure) {
	it.waiting, it.cause = false, cause
	q.waiting--
	q.bytes -= it.size
	if cause != nil {
		q.last = cause
	}
	if cause == nil || q.behind || it.gone && len(it.flushes) > 0 { // a Flush reports it now
		delete(q.items, it.id)
	}
	for _, t := range it.flushes {
		t.ended(it)
	}
	it.flushes = nil
}

// aboutBlob reports whether an error concerns one blob rather than the remote.
func aboutBlob(err error) bool {
	for _, e := range []error{blob.ErrNotFound, blob.ErrMismatch, blob.ErrCorrupt, blob.ErrTooLarge, blob.ErrInvalidID} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
