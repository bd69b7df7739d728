package writethrough

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// ticket is what one Flush waits for: an outcome for every item that existed when it
// began. Store.mu guards it.
type ticket struct {
	left     int
	done     chan struct{} // closed when left is 0
	outcomes []*outcome
	byCause  map[*failure]*outcome
}

// outcome is a failure and its items; a remote that is down yields one error, not
// thousands.
type outcome struct {
	cause *failure
	first blob.ID
	items int
}

func (o *outcome) err() error {
	if o.items == 1 {
		return fmt.Errorf("write %s to remote: %w", o.first, o.cause.err)
	}
	return fmt.Errorf("write %s and %d more blobs to remote: %w", o.first, o.items-1, o.cause.err)
}

func (t *ticket) ended(it *item) {
	if it.cause != nil {
		o := t.byCause[it.cause]
		if o == nil {
			o = &outcome{cause: it.cause, first: it.id}
			t.byCause[it.cause] = o
			t.outcomes = append(t.outcomes, o)
		}
		o.items++
	}
	if t.left--; t.left == 0 {
		close(t.done)
	}
}

// drain retries failed items and waits until each has succeeded or failed again.
func (s *Store) drain(ctx context.Context) error {
	t := s.board()
	select {
	case <-t.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for remote writes: %w", ctx.Err())
	case <-s.stopped:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if t.left > 0 {
		errs = append(errs, fmt.Errorf("write %d blobs to remote: %w", t.left, blob.ErrClosed))
	}
	for _, o := range t.outcomes {
		errs = append(errs, o.err())
	}
	return errors.Join(errs...)
}

// board makes a ticket for all items and puts failed ones back in the queue.
func (s *Store) board() *ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	t := &ticket{left: len(q.items), done: make(chan struct{}), byCause: make(map[*failure]*outcome)}
	if t.left == 0 {
		close(t.done)
		return t
	}
	var failed []*item
	for id, it := range q.items {
		switch {
		case it.waiting: // the sender may be using it: do not read other fields
			it.flushes = append(it.flushes, t)
		case it.gone:
			delete(q.items, id)
			t.ended(it)
		default:
			it.flushes = append(it.flushes, t)
			failed = append(failed, it)
		}
	}
	q.repeat(failed)
	s.changeLocked()
	return t
}

// repeat puts failed items back in the queue: in front of the others, which may lean
// on them. Items that failed alone go to the end, so that they do not hold up the
// rest.
func (q *queue) repeat(failed []*item) {
	slices.SortFunc(failed, func(a, b *item) int { return cmp.Compare(a.order, b.order) })
	var front, back []*item
	for _, it := range failed {
		q.await(it)
		if it.suspect {
			back = append(back, it)
		} else {
			front = append(front, it)
		}
	}
	q.line = slices.Concat(front, q.line, back)
}
