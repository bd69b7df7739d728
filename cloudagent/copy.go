package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// Origin says where the agent of a copy runs.
type Origin struct {
	// Address is that of its server; empty for an agent of this store.
	Address string
	// Offset is the place in its log there up to which the events were copied.
	Offset string
}

// CopyOptions configure Copy. Both fields are required.
type CopyOptions struct {
	// Address names the server where the agent runs. A copy can only be continued from
	// the address that it began with.
	Address string
	// Follow yields the events of the agent after an offset, and puts states and their
	// blobs into the cache before it yields them; client.Agents.Follow does.
	Follow func(ctx context.Context, after string, cache blob.Store) iter.Seq2[Event, error]
}

const (
	// copiedEvents and copiedBytes limit the events of one commit.
	copiedEvents = 256
	copiedBytes  = 4 << 20
	// copyAttempts is how often blobs may vanish between their arrival and the commit.
	copyAttempts = 5
)

// Copy follows an agent that runs elsewhere and keeps a copy of it: its events as a log
// of this store, its states with their blobs, its status, its metadata, and the offset up
// to which it was followed. Each event is yielded when it is stored. A later call, also of
// another process, continues at that offset: every event is copied once and in order.
//
// The copy has the id of the agent and is read like any other agent. Only Copy
// changes it. It begins with the state that the agent has at the time; if the agent's
// history was replaced, as after a restored backup, it continues with the new state.
// Blobs that the origin cannot provide are missing here as well; Event.Missing names
// them.
//
// spec describes the agent as its server does; conversations of this store are left
// alone. Copy fails with ErrExists if an agent of this store has the id, or a copy from
// another address, and with ErrConflict if another process copies the agent, too. It ends
// when the agent has ended.
func (s *Store) Copy(ctx context.Context, spec Spec, opts CopyOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		c := &copier{s: s, agent: spec.ID, opts: opts, yield: yield}
		if err := c.run(ctx, spec); err != nil && !c.stopped {
			yield(Event{}, fmt.Errorf("copy agent %s: %w", spec.ID, err))
		}
	}
}

// copier is a running Copy.
type copier struct {
	s       *Store
	agent   string
	opts    CopyOptions
	yield   func(Event, error) bool
	stopped bool   // by the caller
	after   string // at the origin; everything before is stored
	cache   *copyCache
}

func (c *copier) run(ctx context.Context, spec Spec) error {
	if c.opts.Address == "" || c.opts.Follow == nil {
		return invalid("copying needs an address and Follow")
	}
	if err := c.begin(ctx, spec); err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		before := c.after
		err := c.follow(ctx)
		// A collector may remove blobs before the commit that names them. A new
		// follower looks for them again.
		var gone *kv.MissingBlobsError
		if !errors.As(err, &gone) || attempt >= copyAttempts {
			return err
		}
		if c.after != before {
			attempt = 0
		}
	}
}

// begin finds the copy, or creates an empty one.
func (c *copier) begin(ctx context.Context, spec Spec) error {
	now, err := c.s.Get(ctx, c.agent)
	if errors.Is(err, ErrNotFound) {
		err = c.create(ctx, spec)
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
		now, err = c.s.Get(ctx, c.agent) // another process was faster
	}
	switch {
	case err != nil:
		return err
	case now.Origin.Address == "":
		return fmt.Errorf("%w: it runs in this store", ErrExists)
	case now.Origin.Address != c.opts.Address:
		return fmt.Errorf("%w: it is a copy of the one at %s", ErrExists, now.Origin.Address)
	}
	c.after = now.Origin.Offset
	return nil
}

func (c *copier) create(ctx context.Context, spec Spec) error {
	if err := checkID("agent", spec.ID); err != nil {
		return err
	}
	rec := c.s.newRecord(spec)
	rec.Origin = &stetv1.AgentOrigin{Address: c.opts.Address}
	set, err := encodeRecord(rec)
	if err != nil {
		return err
	}
	return c.s.rows.Commit(ctx, &kv.Batch{Expect: absent(spec.ID), Set: []kv.Set{set}})
}

// follow stores events until the follower ends. Events that arrive during a commit are
// stored together by the next one.
func (c *copier) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.cache = newCopyCache(c.s, c.agent)
	events := make(chan Event, copiedEvents)
	var failed error
	go func() {
		defer close(events)
		for e, err := range c.opts.Follow(ctx, c.after, c.cache) {
			if failed = err; err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	for e := range events {
		err := c.store(ctx, ready(e, events))
		if err != nil || c.stopped {
			cancel()
			for range events { // ends with the follower
			}
			return err
		}
	}
	return failed
}

// ready returns an event and those that have arrived after it, within the limits.
func ready(first Event, events <-chan Event) []Event {
	batch, size := []Event{first}, proto.Size(first.Update)
	for len(batch) < copiedEvents && size < copiedBytes {
		select {
		case e, ok := <-events:
			if !ok {
				return batch
			}
			batch, size = append(batch, e), size+proto.Size(e.Update)
		default:
			return batch
		}
	}
	return batch
}

// store adds events to the copy in one commit and passes them on.
func (c *copier) store(ctx context.Context, batch []Event) error {
	if err := c.cache.Flush(ctx); err != nil {
		return err
	}
	next := c.after
	_, err := c.s.change(ctx, c.agent, func(ch *change) error {
		next = c.after
		if ch.rec.Origin == nil || ch.rec.Origin.Address != c.opts.Address || ch.rec.Origin.Offset != c.after {
			return fmt.Errorf("%w: another process copies it, or it was replaced", ErrConflict)
		}
		for _, e := range batch {
			if err := c.add(ctx, ch, e); err != nil {
				return err
			}
			if e.Offset != "" {
				next = e.Offset
			}
		}
		ch.rec.Origin.Offset = next
		return nil
	})
	if err != nil {
		return err
	}
	c.after = next
	for _, e := range batch {
		if c.stopped = !c.yield(e, nil); c.stopped {
			return nil
		}
	}
	return nil
}
