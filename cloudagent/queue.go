package cloudagent

import (
	"context"
	"errors"
	"fmt"
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

	mu      sync.Mutex // guards what follows
	pending int
	errs    []error
	idle    []chan struct{} // closed when pending becomes 0
}

// queue returns the queue of a conversation; leaveQueue releases it.
func (s *Store) queue(conversation string) *queue {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	q := s.queues.all[conversation]
	if q == nil {
		if s.queues.all == nil {
			s.queues.all = make(map[string]*queue)
		}
		q = &queue{slots: make(chan struct{}, maxWrites), room: make(chan struct{}, maxQueued)}
		s.queues.all[conversation] = q
	}
	q.users++
	return q
}

// leaveQueue drops an empty queue. A queue with users stays, since nothing would wait
// for writes added to a dropped one.
func (s *Store) leaveQueue(conversation string, q *queue) {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.users--; q.users == 0 && q.pending == 0 && len(q.errs) == 0 {
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
		q.mu.Lock()
		q.pending++
		q.mu.Unlock()
		go func() {
			q.slots <- struct{}{}
			err := s.blobs.Put(ctx2, b)
			<-q.slots
			<-q.room
			q.done(b.ID, err)
		}()
	}
	return nil
}

func (q *queue) done(id blob.ID, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.errs = append(q.errs, fmt.Errorf("write blob %s: %w", id, err))
	}
	if q.pending--; q.pending == 0 {
		for _, c := range q.idle {
			close(c)
		}
		q.idle = nil
	}
}

// WaitForPendingWrites returns once no queued write of the conversation is left and
// everything written is durable. It returns every error since the last call.
func (s *Store) WaitForPendingWrites(ctx context.Context, conversation string) error {
	q := s.queue(conversation)
	defer s.leaveQueue(conversation, q)
	q.mu.Lock()
	if q.pending > 0 {
		c := make(chan struct{})
		q.idle = append(q.idle, c)
		q.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
		q.mu.Lock()
	}
	errs := q.errs
	q.errs = nil
	q.mu.Unlock()
	return errors.Join(append(errs, s.blobs.Flush(ctx))...)
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
