package postgres

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

const (
	// lingerTime is how long a blob that is not flushed stays in memory only.
	lingerTime = 100 * time.Millisecond
	// lanes is how many transactions of a tenant a node runs at once.
	lanes = 4
	// maxGroup and maxGroupBytes limit one transaction.
	maxGroup      = 128
	maxGroupBytes = 4 << 20
)

// record is a blob that is not durable yet.
type record struct {
	id, base blob.ID
	size     int64
	data     []byte // nil if object is set
	object   string // its key in the bucket
}

func (r *record) weight() int { return len(r.data) + 160 }

// request waits for a batch or, without one, for all blobs that were put before.
type request struct {
	ctx   context.Context
	batch *kv.Batch
	done  chan error // buffered: the writer never blocks on it
}

// needsBlobs reports whether all earlier blobs must be stored with the request. A
// blob that it names may refer to others that it does not name.
func (r *request) needsBlobs() bool { return r.batch == nil || len(r.batch.Refs) > 0 }

// put queues a record, waiting while too much is pending.
func (t *Tenant) put(ctx context.Context, r *record) error {
	for {
		full, err := t.tryPut(r)
		if err != nil || full == nil {
			return err
		}
		t.flushSoon()
		select {
		case <-full:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.mu.Lock()
		stuck := t.stuck
		t.mu.Unlock()
		if stuck != nil {
			return stuck
		}
	}
}

// tryPut returns a channel to wait for if there is no room now.
func (t *Tenant) tryPut(r *record) (full <-chan struct{}, err error) {
	if t.db.closed() {
		return nil, blob.ErrClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.pending[r.id]; there {
		return nil, nil
	}
	if t.bytes > 0 && t.bytes+r.weight() > t.db.opts.MaxPending {
		return t.drained, nil
	}
	t.pending[r.id] = r
	t.queue = append(t.queue, r)
	t.bytes += r.weight()
	if !t.lingers {
		t.lingers = true
		time.AfterFunc(lingerTime, t.flushSoon)
	}
	return nil, nil
}

// find returns a pending record.
func (t *Tenant) find(id blob.ID) *record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending[id]
}

func (t *Tenant) waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending) > 0
}

// flushSoon starts a write of queued blobs that no request waits for.
func (t *Tenant) flushSoon() {
	t.mu.Lock()
	t.lingers = false
	idle := len(t.queue) == 0
	t.mu.Unlock()
	if !idle {
		t.enqueue(&request{ctx: t.db.ctx, done: make(chan error, 1)})
	}
}

// do queues a request and waits for its result.
func (t *Tenant) do(r *request) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.done = make(chan error, 1)
	if !t.enqueue(r) {
		return blob.ErrClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-t.db.ctx.Done():
		return blob.ErrClosed
	}
}

func (t *Tenant) enqueue(r *request) bool {
	t.mu.Lock()
	t.requests = append(t.requests, r)
	start := t.active < lanes
	if start {
		t.active++
	}
	t.mu.Unlock()
	if !start {
		return true
	}
	if t.db.begin(t.write) {
		return true
	}
	t.mu.Lock()
	t.active--
	t.mu.Unlock()
	return false
}

// write runs transactions while there is work.
func (t *Tenant) write() {
	for {
		select {
		case t.db.writers <- struct{}{}:
		case <-t.db.ctx.Done():
			return
		}
		g := t.take()
		if g == nil {
			<-t.db.writers
			return
		}
		g.run()
		<-t.db.writers
	}
}

// gather lets callers that the last transaction has just answered join the next one.
// Without it they and the others would take turns and share nothing. It only yields,
// so a lone writer never waits.
func (t *Tenant) gather() {
	var first int
	for i := range 16 {
		t.mu.Lock()
		waiting, last := len(t.requests), t.last
		t.mu.Unlock()
		if i == 0 {
			first = waiting
		}
		if last <= 1 || waiting >= first+last {
			return
		}
		runtime.Gosched()
	}
}

// take collects the work of the next transaction, or returns nil and uncounts its
// goroutine. Requests that need blobs wait while a transaction with blobs is running,
// because theirs may be among them; the goroutine of that transaction takes them
// next.
func (t *Tenant) take() *group {
	t.gather()
	t.mu.Lock()
	defer t.mu.Unlock()
	g := newGroup(t)
	var rest []*request
	for _, r := range t.requests {
		if err := r.ctx.Err(); err != nil {
			r.done <- err
			continue
		}
		if r.needsBlobs() && t.carrying || !g.admit(r) {
			rest = append(rest, r)
		}
	}
	t.requests = rest
	if len(g.reqs) == 0 {
		t.active--
		return nil
	}
	if g.carries {
		g.recs, t.queue, t.carrying = t.queue, nil, true
	}
	t.last = len(g.reqs)
	return g
}

// conclude removes records from memory once they are durable. After an error they go
// back to the front of the queue, and a later transaction tries again.
func (t *Tenant) conclude(g *group, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !g.carries {
		return
	}
	t.carrying = false
	t.stuck = err
	if err != nil {
		t.queue = append(g.recs, t.queue...)
	} else {
		for _, r := range g.recs {
			t.dropLocked(r)
			t.rememberLocked(r.id)
		}
	}
	for _, l := range g.lost {
		t.dropLocked(l.rec)
		t.lost = append(t.lost, l.err)
	}
	close(t.drained)
	t.drained = make(chan struct{})
	if len(t.queue) > 0 && !t.lingers {
		t.lingers = true
		time.AfterFunc(lingerTime, t.flushSoon)
	}
}

func (t *Tenant) dropLocked(r *record) {
	if t.pending[r.id] == r {
		delete(t.pending, r.id)
		t.bytes -= r.weight()
	}
}

// takeLost returns the losses that were not reported yet. Callers take them themselves:
// the request of a caller that has given up, or one that nobody waits for, would take
// them in vain.
func (t *Tenant) takeLost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := errors.Join(t.lost...)
	t.lost = nil
	return err
}
