package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// pollTime is how often the writer looks for commits of other processes while there are
// watchers.
const pollTime = 50 * time.Millisecond

// logLimit is the number of log pages at which the log is copied into the database.
const logLimit = 1000

// request waits for the writer: for a batch, for a task that needs its own transaction,
// or, with neither, for all earlier blobs.
type request struct {
	ctx   context.Context
	batch *kv.Batch
	task  func(*conn) error
	done  chan error // buffered: the writer never blocks on it
}

// writer owns the one connection that writes.
type writer struct {
	db   *DB
	conn *conn
	wake chan struct{}
	done chan struct{}
	turn sync.Mutex // held by whoever uses conn

	fresh fresh

	// Guarded by turn:
	lastGroup  int   // requests of the last round
	logPages   int   // pages in the log after the last commit
	logLimit   int   // pages at which the log is moved
	generation int64 // of new blobs in the transaction of a group; 0 outside of one
	closed     bool  // conn is closed

	mu       sync.Mutex // guards the fields below
	pending  map[blob.ID]*record
	queue    []*record // of pending, in order; taken by the next transaction
	requests []*request
	bytes    int               // weight of pending
	drained  chan struct{}     // closed when pending shrinks or the writer is stuck
	lost     map[blob.ID]error // blobs that could not be stored; the next Flush reports them
	stuck    error             // why the last transaction failed; nil after a success
	failed   error             // set permanently when further writes are unsafe
	stopping bool
	rounds   uint64
	lingers  bool // a check for unflushed blobs is scheduled
}

func newWriter(db *DB, c *conn) *writer {
	w := &writer{
		db: db, conn: c,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		pending:  make(map[blob.ID]*record),
		lost:     make(map[blob.ID]error),
		drained:  make(chan struct{}),
		logLimit: logLimit,
	}
	db.disk.syncing = w.syncing
	// This replaces the library's own checkpoint, which would run while a writer waits.
	c.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		w.logPages = pages
		return nil
	})
	return w
}

// do queues a request and waits for its result.
func (w *writer) do(r *request) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.done = answers.Get().(chan error)
	w.mu.Lock()
	if err := w.refusalLocked(); err != nil {
		w.mu.Unlock()
		return err
	}
	w.requests = append(w.requests, r)
	w.mu.Unlock()
	if w.turn.TryLock() {
		// No round is running: writing here saves waking another goroutine and being
		// woken by it, which costs a lone writer about as much as the transaction
		// itself.
		w.round()
		if w.logPages >= w.logLimit {
			w.signal() // the caller does not wait for that
		}
		w.turn.Unlock()
	} else {
		w.signal()
	}
	select {
	case err := <-r.done:
		answers.Put(r.done)
		return err
	case <-r.ctx.Done(): // the answer may still come; do not reuse the channel
		return r.ctx.Err()
	}
}

// answers pools the channels of answered requests.
var answers = sync.Pool{New: func() any { return make(chan error, 1) }}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// round writes everything queued. The caller holds turn.
func (w *writer) round() (stopping bool) {
	w.gather()
	recs, reqs, stopping := w.take()
	w.process(recs, reqs)
	w.lastGroup = len(reqs)
	return stopping
}

// gather lets callers that the last round has just woken join this one. Without it
// large and tiny groups alternate, and every second fsync serves one or two. It only
// yields, so a lone writer never waits.
func (w *writer) gather() {
	for range 16 {
		w.mu.Lock()
		waiting := len(w.requests)
		w.mu.Unlock()
		if 2*waiting >= w.lastGroup {
			return
		}
		runtime.Gosched()
	}
}

// run is the writing goroutine. Requests that arrive during one transaction share the
// next one.
func (w *writer) run() {
	defer close(w.done)
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		select {
		case <-w.wake:
		case <-poll.C:
			w.turn.Lock()
			w.db.watch.poll(w.conn)
			w.turn.Unlock()
			continue
		}
		w.turn.Lock()
		stopping := w.round()
		if !stopping { // otherwise Close does it
			w.moveLog()
		}
		w.turn.Unlock()
		if stopping {
			return
		}
	}
}

// moveLog copies a long log into the database, so that the next commit can restart it.
// Waiting commits have been answered before. If it fails, nothing is lost: the log
// stays as it is, and the next commit tries again.
func (w *writer) moveLog() {
	if w.logPages < w.logLimit {
		return
	}
	w.logPages = 0
	_, _, _ = w.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
}

func (w *writer) take() ([]*record, []*request, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	recs, reqs := w.queue, w.requests
	w.queue, w.requests = nil, nil
	w.rounds++
	return recs, reqs, w.stopping
}

// process writes the records and batches in one transaction, then runs tasks.
func (w *writer) process(recs []*record, reqs []*request) {
	var tasks []*request
	verdicts := make([]error, len(reqs))
	writes := len(recs) > 0
	for i, r := range reqs {
		if r.task != nil {
			tasks = append(tasks, r)
			continue
		}
		if verdicts[i] = r.ctx.Err(); verdicts[i] == nil {
			writes = writes || r.batch != nil
		}
	}
	var g *group
	var err error
	if writes {
		g = &group{w: w, c: w.conn}
		err = w.transact(func(c *conn) error {
			defer w.fresh.current.Store(0)
			return g.apply(recs, reqs, verdicts)
		})
		w.generation = 0
		if err == nil {
			w.fresh.add(g.gen, g.fresh)
		}
	}
	w.conclude(recs, g, err)
	for i, r := range reqs {
		if r.task != nil {
			continue
		}
		w.finish(r, verdicts[i], err)
	}
	for _, r := range tasks {
		taskErr := w.transact(r.task)
		if taskErr != nil {
			w.noteFailure(taskErr)
		}
		r.done <- taskErr
	}
}

// finish answers one request of a group.
func (w *writer) finish(r *request, verdict, err error) {
	switch {
	case err != nil:
		r.done <- err
	case verdict != nil:
		r.done <- verdict
	case r.batch == nil:
		r.done <- nil
	default:
		w.db.watch.committed(r.batch)
		r.done <- nil
	}
}

// transact runs fn between BEGIN and COMMIT.
func (w *writer) transact(fn func(*conn) error) error {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed != nil {
		return readOnlySince(failed)
	}
	w.db.disk.forget()
	return w.db.disk.explain("use the disk", w.tryTransact(fn))
}

func (w *writer) tryTransact(fn func(*conn) error) error {
	if err := w.conn.exec(`BEGIN IMMEDIATE`); err != nil {
		return sqlError("begin transaction", err)
	}
	err := fn(w.conn)
	if err == nil {
		err = sqlError("commit transaction", w.conn.exec(`COMMIT`))
		if unsafeToGoOn(err) {
			// The library forgets the transaction, but all of it may be in the log, and
			// the next reader of the log finds it.
			err = fmt.Errorf("%w: %w", kv.ErrUncertain, err)
		}
	}
	if err != nil && !w.conn.GetAutocommit() {
		if rollback := w.conn.exec(`ROLLBACK`); rollback != nil {
			err = errors.Join(err, sqlError("roll back", rollback))
		}
	}
	return err
}

func readOnlySince(failed error) error {
	return fmt.Errorf("%w after a failed write until it is reopened: %w", blob.ErrReadOnly, failed)
}

// stop makes pending data durable and ends the goroutine.
func (w *writer) stop() error {
	var err error
	if !w.db.opts.ReadOnly {
		err = w.flush(context.Background())
	}
	w.mu.Lock()
	w.stopping = true
	w.mu.Unlock()
	w.signal()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests { // too late for the last round
		r.done <- blob.ErrClosed
	}
	w.requests = nil
	return err
}
