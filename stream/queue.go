package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Limits of one commit: the queue of a busy stream is not written in one piece.
const (
	maxShared      = 256
	maxSharedBytes = 1 << 20
)

// queue holds the changes of a stream that wait for their turn. The writer whose turn
// it is also commits those that wait behind it.
type queue struct {
	mu      sync.Mutex // guards waiting
	waiting []*write
}

// write is a change that waits.
type write struct {
	do    func(*change) error
	bytes int
	done  chan struct{} // closed when err is set
	err   error
}

// change is a commit in preparation. A write checks everything before it changes
// anything, because a failed write must leave nothing behind.
type change struct {
	rec       *stetv1.StreamRecord
	appends   []kv.Set
	producers map[string]*stetv1.StreamProducer // that were read; nil if there is none
	moved     map[string]bool                   // producers that changed
	refs      []blob.ID
	changed   bool
}

// errUnchanged ends a write that has nothing to change.
var errUnchanged = errors.New("nothing to change")

// update changes a stream in one commit, which other updates may share. do is called
// again with a newer record if another process was faster.
func (s *Store) update(ctx context.Context, path string, bytes int, do func(*change) error) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	l := s.lanes.Enter(path)
	defer s.lanes.Leave(l)
	w := &write{do: do, bytes: bytes, done: make(chan struct{})}
	l.Value.add(w)
	if err := l.Begin(ctx); err != nil {
		if l.Value.drop(w) {
			return err
		}
		<-w.done // another writer has it in its commit
		return w.err
	}
	defer l.End()
	select {
	case <-w.done: // the writer before committed it
		return w.err
	default:
	}
	// Others share the commit, so it must not end with this call's context.
	s.commit(context.WithoutCancel(ctx), path, l.Value.take(w))
	return w.err
}

func (q *queue) add(w *write) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
}

// drop reports whether a write was still waiting.
func (q *queue) drop(w *write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// take returns the next writes for one commit, in the order in which they came. The
// caller's is one of them.
func (q *queue) take(own *write) []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size, has := 0, 0, false
	for n < len(q.waiting) && (!has || n < maxShared && size+q.waiting[n].bytes <= maxSharedBytes) {
		size += q.waiting[n].bytes
		has = has || q.waiting[n] == own
		n++
	}
	taken := append([]*write(nil), q.waiting[:n]...)
	q.waiting = append(q.waiting[:0], q.waiting[n:]...)
	return taken
}

// commit does some writes and sets their results.
func (s *Store) commit(ctx context.Context, path string, writes []*write) {
	err := lane.Retry(ctx, func() error { return s.tryCommit(ctx, path, writes) })
	for _, w := range writes {
		if err != nil {
			w.err = err
		}
		close(w.done)
	}
}

// tryCommit returns an error that applies to all writes.
func (s *Store) tryCommit(ctx context.Context, path string, writes []*write) error {
	now, err := s.load(ctx, path)
	if err != nil {
		return err
	}
	c := &change{
		rec: proto.CloneOf(now.rec), producers: make(map[string]*stetv1.StreamProducer), moved: make(map[string]bool),
	}
	for _, w := range writes {
		if w.err = w.do(c); errors.Is(w.err, errUnchanged) {
			w.err = nil
		} else if w.err == nil {
			c.changed = true
		}
	}
	if !c.changed {
		return s.touch(ctx, now)
	}
	c.rec.AccessedMs = max(s.nowMS(), c.rec.AccessedMs)
	b, err := c.batch(now.expect())
	if err != nil {
		return err
	}
	if err := s.rows.Commit(ctx, b); err != nil {
		return fmt.Errorf("change stream %s: %w", path, err)
	}
	return nil
}

func (c *change) batch(expect kv.Expect) (*kv.Batch, error) {
	set, err := rowformat.Set(expect.Key, c.rec)
	if err != nil {
		return nil, err
	}
	b := &kv.Batch{Expect: []kv.Expect{expect}, Set: append(c.appends, set), Refs: c.refs}
	for id := range c.moved {
		set, err := rowformat.Set(keyspace.StreamProducer(c.rec.Id, id), c.producers[id])
		if err != nil {
			return nil, err
		}
		b.Set = append(b.Set, set)
	}
	return b, nil
}

// producer reads the state of a producer. Every change of it changes the record, too,
// so the commit detects a concurrent one.
func (s *Store) producer(ctx context.Context, c *change, id string) (*stetv1.StreamProducer, error) {
	if p, ok := c.producers[id]; ok {
		return p, nil
	}
	row, err := s.rows.Get(ctx, keyspace.StreamProducer(c.rec.Id, id))
	if errors.Is(err, kv.ErrNotFound) {
		c.producers[id] = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read producer %s: %w", id, err)
	}
	p, err := decodeProducer(row)
	if err != nil {
		return nil, err
	}
	c.producers[id] = p
	return p, nil
}
