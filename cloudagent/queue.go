package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stet-dev/stet/blob"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

const (
	// maxWrites is how many queued writes of one conversation run at once.
	maxWrites = 50
	// maxQueued is how many writes of one conversation may be queued; adding more
	// blocks.
	maxQueued = 4096
)

// queues are the running writes, by conversation.
type queues struct {
	mu  sync.Mutex // guards all, and users of every queue
	all map[string]*queue
}

// queue holds the writes of one conversation.
type queue struct {
	slots chan struct{} // one value for each write that runs
	room  chan struct{} // one value for each unfinished write
	users int           // calls that hold the queue; guarded by queues.mu

	mu      sync.Mutex                 // guards what follows
	pending map[chan struct{}]struct{} // unfinished writes; each channel is closed at the end of its write
	errs    []error                    // of finished writes, until they are reported
	more    int                        // errors that errs has no room for
}

// maxErrors is how many errors a queue holds for its next waiter.
const maxErrors = 64

// queue returns the queue of a conversation; leaveQueue releases it.
func (s *Store) queue(conversation string) *queue {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	q := s.queues.all[conversation]
	if q == nil {
		if s.queues.all == nil {
			s.queues.all = make(map[string]*queue)
		}
		q = &queue{
			slots: make(chan struct{}, maxWrites), room: make(chan struct{}, maxQueued),
			pending: make(map[chan struct{}]struct{}),
		}
		s.queues.all[conversation] = q
	}
	q.users++
	return q
}

// leaveQueue drops a queue without users. Each unfinished write is one, so that a
// waiter finds it. A queue with errors stays until they are reported.
func (s *Store) leaveQueue(conversation string, q *queue) {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.users--; q.users == 0 && len(q.errs) == 0 {
		delete(s.queues.all, conversation)
	}
}

// EnqueueSetBlobs stores blobs in the background, at most 50 of a conversation at
// once. It fails for blobs that do not match their id, and blocks only if thousands
// are queued. WaitForPendingWrites returns the errors.
func (s *Store) EnqueueSetBlobs(ctx context.Context, conversation string, blobs ...*aiserverv1.PreFetchedBlob) error {
	checked, err := verified(blobs)
	if err != nil {
		return err
	}
	q := s.queue(conversation)
	defer s.leaveQueue(conversation, q)
	ctx2 := context.WithoutCancel(ctx) // the write outlives the call
	for _, b := range checked {
		select {
		case q.room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		b.Data = slices.Clone(b.Data)
		s.queue(conversation) // the same, for the write
		written := q.add()
		go func() {
			defer s.leaveQueue(conversation, q)
			q.slots <- struct{}{}
			err := s.blobs.Put(ctx2, b)
			<-q.slots
			<-q.room
			q.done(written, b.ID, err)
		}()
	}
	return nil
}

// add notes a write that has begun.
func (q *queue) add() chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	written := make(chan struct{})
	q.pending[written] = struct{}{}
	return written
}

func (q *queue) done(written chan struct{}, id blob.ID, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err != nil && len(q.errs) < maxErrors:
		q.errs = append(q.errs, fmt.Errorf("write blob %s: %w", id, err))
	case err != nil:
		q.more++
	}
	delete(q.pending, written)
	close(written)
}

// WaitForPendingWrites returns once the writes of the conversation that were queued
// before the call have ended and everything written is durable. Later writes do not
// delay it. It returns every error since the last call.
func (s *Store) WaitForPendingWrites(ctx context.Context, conversation string) error {
	q := s.queue(conversation)
	defer s.leaveQueue(conversation, q)
	q.mu.Lock()
	pending := slices.Collect(maps.Keys(q.pending))
	q.mu.Unlock()
	for _, written := range pending {
		select {
		case <-written:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(append(q.report(), s.blobs.Flush(ctx))...)
}

// report returns the errors that were not reported yet.
func (q *queue) report() []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	errs := q.errs
	if q.more > 0 {
		errs = append(errs, fmt.Errorf("%d more writes failed", q.more))
	}
	q.errs, q.more = nil, 0
	return errs
}

// StorePrefetchedBlobs stores blobs and returns once they can be read. It stores
// nothing if one of them does not match its id.
func (s *Store) StorePrefetchedBlobs(ctx context.Context, blobs ...*aiserverv1.PreFetchedBlob) error {
	checked, err := verified(blobs)
	if err != nil {
		return err
	}
	return s.blobs.Put(ctx, checked...)
}
