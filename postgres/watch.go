package postgres

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/kv"
)

// notifyPause is the minimum time between two notifications of a node. Each is a
// transaction that takes a server-wide lock, so they are few and never part of a
// commit.
const notifyPause = 5 * time.Millisecond

// watchers wakes goroutines that wait for changes.
type watchers struct {
	db   *DB
	node string // identifies this node's notifications
	due  chan struct{}

	mu      sync.Mutex // guards the fields below
	all     map[string]map[*watcher]struct{}
	touched map[string]*touched // since the last notification, by tenant
}

type watcher struct {
	in   kv.Range
	wake chan struct{}
}

func newWatchers(db *DB) *watchers {
	return &watchers{
		db: db, node: rand.Text()[:8], due: make(chan struct{}, 1),
		all: make(map[string]map[*watcher]struct{}), touched: make(map[string]*touched),
	}
}

func (w *watchers) add(ctx context.Context, tenant string, in kv.Range) <-chan struct{} {
	one := &watcher{in: in, wake: make(chan struct{}, 1)}
	w.mu.Lock()
	if w.all[tenant] == nil {
		w.all[tenant] = make(map[*watcher]struct{})
	}
	w.all[tenant][one] = struct{}{}
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all[tenant], one)
		if len(w.all[tenant]) == 0 {
			delete(w.all, tenant)
		}
	})
	return one.wake
}

func (one *watcher) hint() {
	select {
	case one.wake <- struct{}{}:
	default: // a hint is waiting already
	}
}

// committed wakes the watchers of this node and queues a notification for the others.
func (w *watchers) committed(tenant string, b *kv.Batch) {
	if len(b.Set)+len(b.Delete)+len(b.DeleteRange) == 0 {
		return
	}
	w.mu.Lock()
	t := w.touched[tenant]
	if t == nil {
		t = newTouched()
		w.touched[tenant] = t
	}
	t.add(b)
	for one := range w.all[tenant] {
		if b.Touches(one.in) {
			one.hint()
		}
	}
	w.mu.Unlock()
	select {
	case w.due <- struct{}{}:
	default:
	}
}

// send notifies other nodes of what this one has committed. Hints that cannot be sent
// are dropped: hints may be lost, and watchers poll.
func (w *watchers) send() {
	for {
		select {
		case <-w.due:
		case <-w.db.ctx.Done():
			return
		}
		w.mu.Lock()
		payloads := encodeHints(w.node, w.touched)
		w.touched = make(map[string]*touched)
		w.mu.Unlock()
		w.notify(payloads)
		select {
		case <-time.After(notifyPause):
		case <-w.db.ctx.Done():
			return
		}
	}
}

const sqlNotify = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, n.payload) FROM unnest($2::text[]) AS n (payload)`

// notify sends payloads in one transaction, which need not be durable.
func (w *watchers) notify(payloads []string) {
	ctx, cancel := context.WithTimeout(w.db.ctx, w.db.opts.StatementTimeout)
	defer cancel()
	_, _ = w.db.pool.Exec(ctx, sqlNotify, w.channel(), payloads) // a lost hint is fine
}

func (w *watchers) channel() string { return "stet_" + w.db.opts.Schema }

// listen receives the notifications of other nodes, over its own connection, and
// reconnects when it breaks.
func (w *watchers) listen() {
	wait := 50 * time.Millisecond
	for {
		if w.receive() {
			wait = 50 * time.Millisecond
		}
		if w.db.pause(wait) != nil {
			return
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// receive reports whether it could listen.
func (w *watchers) receive() bool {
	ctx := w.db.ctx
	conn, err := w.db.pool.Acquire(ctx)
	if err != nil {
		return false
	}
	// It listens, so no other caller can use it.
	own := conn.Hijack()
	defer own.Close(context.WithoutCancel(ctx))
	if _, err := own.Exec(ctx, "LISTEN "+pgx.Identifier{w.channel()}.Sanitize()); err != nil {
		return false
	}
	w.wakeAll() // commits meanwhile are unknown
	for {
		n, err := own.WaitForNotification(ctx)
		if err != nil {
			return true
		}
		w.received(n.Payload)
	}
}

// received wakes the watchers that a notification concerns.
func (w *watchers) received(payload string) {
	node, hints, ok := decodeHints(payload)
	if node == w.node {
		return // woken at the commit already
	}
	if !ok {
		w.wakeAll()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range hints {
		for one := range w.all[h.tenant] {
			if h.concerns(one.in) {
				one.hint()
			}
		}
	}
}

// poll wakes all watchers from time to time, even without notifications.
func (w *watchers) poll() {
	tick := time.NewTicker(w.db.opts.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.wakeAll()
		case <-w.db.ctx.Done():
			return
		}
	}
}

func (w *watchers) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tenant := range w.all {
		for one := range tenant {
			one.hint()
		}
	}
}
