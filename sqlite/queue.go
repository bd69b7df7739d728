package sqlite

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
)

// lingerTime is how long a blob that is not flushed stays in memory only.
const lingerTime = 100 * time.Millisecond

// manyRecords is how many blobs of one Put justify a transaction of their own: such a
// caller has more work before its commit, which then finds them written.
const manyRecords = 256

// record is a blob that is not durable yet.
type record struct {
	id, base blob.ID
	size     int64
	data     []byte // nil if file is set
	file     string // suffix of the object file
	renewal  bool   // already stored; only its generation changes
}

func (r *record) weight() int { return len(r.data) + 128 }

// put queues records, waiting while too much is pending.
func (w *writer) put(ctx context.Context, recs []*record) error {
	for _, r := range recs {
		for {
			full, err := w.tryPut(r)
			if err != nil {
				return err
			}
			if full == nil {
				break
			}
			w.signal()
			select {
			case <-full:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := w.stuckWith(); err != nil {
				return err
			}
		}
	}
	if len(recs) >= manyRecords {
		w.signal()
	}
	return nil
}

// tryPut returns a channel to wait for if there is no room now.
func (w *writer) tryPut(r *record) (full <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db.opts.ReadOnly && !w.stopping {
		return nil, w.scratchLocked(r)
	}
	if err := w.refusalLocked(); err != nil {
		return nil, err
	}
	if r.renewal {
		w.queue = append(w.queue, r)
		w.lingerLocked()
		return nil, nil
	}
	if _, there := w.pending[r.id]; there {
		if r.file != "" { // the other record gets the row
			return nil, w.db.objects.discard(r.id, r.file)
		}
		return nil, nil
	}
	if w.bytes > 0 && w.bytes+r.weight() > w.db.opts.MaxPending {
		return w.drained, nil
	}
	w.pending[r.id] = r
	w.queue = append(w.queue, r)
	w.bytes += r.weight()
	w.lingerLocked()
	return nil, nil
}

// scratchLocked holds a blob in memory only.
func (w *writer) scratchLocked(r *record) error {
	if w.bytes+r.weight() > w.db.opts.Scratch {
		return w.db.Refusal()
	}
	if _, there := w.pending[r.id]; there || r.renewal {
		return nil
	}
	w.pending[r.id] = r
	w.bytes += r.weight()
	return nil
}

// scratched fails if blobs were put that cannot be stored.
func (w *writer) scratched() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		return w.db.Refusal()
	}
	return nil
}

// lingerLocked makes sure that queued blobs are written even without a flush.
func (w *writer) lingerLocked() {
	if w.lingers {
		return
	}
	w.lingers = true
	rounds := w.rounds
	time.AfterFunc(lingerTime, func() { w.lingered(rounds) })
}

// lingered checks whether a round has run in the meantime. The queued blobs then came
// later, and waking the writing goroutine would only compete with callers about to
// flush.
func (w *writer) lingered(rounds uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lingers = false
	switch {
	case len(w.queue) == 0:
	case w.rounds == rounds:
		w.signal()
	default:
		w.lingerLocked()
	}
}

func (w *writer) refusalLocked() error {
	switch {
	case w.stopping:
		return blob.ErrClosed
	case w.db.opts.ReadOnly:
		return w.db.Refusal()
	case w.failed != nil:
		return readOnlySince(w.failed)
	}
	return nil
}

// find returns a pending record.
func (w *writer) find(id blob.ID) *record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending[id]
}

// conclude removes records from memory once they are durable. After an error they go back
// to the front of the queue, and a later transaction tries again.
func (w *writer) conclude(recs []*record, g *group, err error) {
	if err != nil {
		w.noteFailure(err)
		w.mu.Lock()
		w.queue = append(recs, w.queue...)
		w.stuck = err
		w.wakePutsLocked()
		w.mu.Unlock()
		return
	}
	if len(recs) == 0 {
		return
	}
	w.mu.Lock()
	for _, r := range recs {
		if !r.renewal {
			delete(w.pending, r.id)
			w.bytes -= r.weight()
		}
		delete(w.lost, r.id) // put again successfully
	}
	maps.Copy(w.lost, g.lost)
	w.stuck = nil
	w.wakePutsLocked()
	w.mu.Unlock()
	for _, r := range recs {
		if r.file == "" {
			continue
		}
		// The next open removes a leftover link; it is harmless.
		if g.unused[r] {
			w.db.objects.discard(r.id, r.file)
		} else {
			w.db.objects.unlinkTemp(r.id, r.file)
		}
	}
}

// wakePutsLocked wakes callers that wait for room.
func (w *writer) wakePutsLocked() {
	close(w.drained)
	w.drained = make(chan struct{})
}

// stuckWith returns why there is no room, if that will not change soon.
func (w *writer) stuckWith() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stuck
}

func (w *writer) noteFailure(err error) {
	if !unsafeToGoOn(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

// flush waits for all earlier blobs and returns the losses that were not reported yet. It
// takes them here because the request of a caller that has given up would take them in
// vain.
func (w *writer) flush(ctx context.Context) error {
	if err := w.do(&request{ctx: ctx}); err != nil {
		return err
	}
	return w.takeLost()
}

func (w *writer) takeLost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(slices.Collect(maps.Values(w.lost))...)
	clear(w.lost)
	return err
}
