package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/kv"
)

// MaxAppend is the largest number of updates of one append.
const MaxAppend = 4096

// maxEvent leaves room in a row for the data around an update.
const maxEvent = kv.MaxValue - 64<<10

// attempts is how often a commit that lost against another process is retried. Each
// loss means that another writer succeeded.
const attempts = 100

// change is a commit in preparation. The record may be changed freely.
type change struct {
	rec     *stetv1.AgentRecord
	events  []kv.Set
	refs    []blob.ID
	also    kv.Batch // of another service, in the same commit
	pointer bool     // metadata changes too
}

// add appends an event.
func (c *change) add(event *stetv1.AgentEventRecord) error {
	set, at, err := encodeEvent(c.rec.Id, offsetOf(c.rec.Head), event)
	if err != nil {
		return err
	}
	c.events = append(c.events, set)
	c.rec.Head = at.record()
	return nil
}

// errUnchanged ends an update that has nothing to change.
var errUnchanged = errors.New("nothing to change")

// update changes an agent of this store in one commit and returns its new record. fn is
// called again with a newer record if another writer was faster.
func (s *Store) update(ctx context.Context, agent string, fn func(*change) error) (*stetv1.AgentRecord, error) {
	return s.change(ctx, agent, func(c *change) error {
		if c.rec.Origin != nil {
			return fmt.Errorf("change agent %s: %w of the one at %s; change it there", agent, ErrCopy, c.rec.Origin.Address)
		}
		return fn(c)
	})
}

// change is update for an agent of this store or a copy.
func (s *Store) change(ctx context.Context, agent string, fn func(*change) error) (*stetv1.AgentRecord, error) {
	if err := checkID("agent", agent); err != nil {
		return nil, err
	}
	l := s.lane(agent)
	defer s.release(l)
	if err := l.Begin(ctx); err != nil {
		return nil, err
	}
	defer l.End()
	var rec *stetv1.AgentRecord
	err := lane.Retry(ctx, func() (err error) {
		rec, err = s.tryUpdate(ctx, l, fn)
		return err
	})
	return rec, err
}

func (s *Store) tryUpdate(ctx context.Context, l *agentLane, fn func(*change) error) (*stetv1.AgentRecord, error) {
	now, err := s.load(ctx, l)
	if err != nil {
		return nil, err
	}
	c := &change{rec: proto.CloneOf(now.rec)}
	if err := fn(c); errors.Is(err, errUnchanged) {
		return now.rec, nil
	} else if err != nil {
		return nil, err
	}
	// Clocks may go back; a newer record must not look older.
	c.rec.UpdatedMs = max(s.nowMS(), c.rec.UpdatedMs)
	b, err := c.batch(now.expect)
	if err != nil {
		return nil, err
	}
	if err := s.rows.Commit(ctx, b); err != nil {
		return nil, fmt.Errorf("change agent %s: %w", l.Name, err)
	}
	return c.rec, nil
}

func (c *change) batch(expect []kv.Expect) (*kv.Batch, error) {
	set, err := encodeRecord(c.rec)
	if err != nil {
		return nil, err
	}
	b := &kv.Batch{
		Expect: slices.Concat(expect, c.also.Expect), Delete: c.also.Delete,
		Set: slices.Concat(c.events, []kv.Set{set}, c.also.Set), Refs: unique(slices.Concat(c.refs, c.also.Refs)),
	}
	if c.pointer && len(c.rec.State) > 0 {
		value, err := EncodeMetadata(Metadata{
			State: stateOf(c.rec), OffsetKey: offsetOf(c.rec.StateAt).String(),
			Time: time.UnixMilli(c.rec.UpdatedMs), Status: c.rec.Status,
		})
		if err != nil {
			return nil, err
		}
		b.Set = append(b.Set, kv.Set{Key: keyspace.AgentMetadata(c.rec.Id), Value: value})
	}
	return b, nil
}

// AppendOptions configure an append; nil gives the defaults.
type AppendOptions struct {
	// Key makes a retry harmless: an append whose key is among the latest of the agent
	// adds nothing and returns the offset of the original append.
	Key string
	// IfHead, if set, is the required end of the log, else ErrConflict. A writer that
	// passes the result of its last call detects other writers.
	IfHead *Offset
}

// keptKeys is how many keys of appends an agent remembers.
const keptKeys = 32

// AppendUpdate adds updates to the agent's log, all of them in one commit, and
// returns the place after the last.
func (s *Store) AppendUpdate(ctx context.Context, agent string, opts *AppendOptions, updates ...*agentv1.InteractionUpdate) (Offset, error) {
	if opts == nil {
		opts = &AppendOptions{}
	}
	if len(updates) == 0 || len(updates) > MaxAppend {
		return Offset{}, invalid("%d updates; append 1 to %d", len(updates), MaxAppend)
	}
	if len(opts.Key) > keyspace.MaxID {
		return Offset{}, invalid("append key has %d bytes; the limit is %d", len(opts.Key), keyspace.MaxID)
	}
	events := make([]*stetv1.AgentEventRecord, len(updates))
	for i, u := range updates {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(u)
		if err != nil {
			return Offset{}, invalid("update %d: %v", i, err)
		}
		if len(raw) > maxEvent {
			return Offset{}, fmt.Errorf("%w: update %d has %d bytes; the limit is %d", ErrTooLarge, i, len(raw), maxEvent)
		}
		events[i] = &stetv1.AgentEventRecord{Event: &stetv1.AgentEventRecord_Update{Update: raw}}
	}
	for range attempts {
		refs, err := s.updateRefs(ctx, updates, events)
		if err != nil {
			return Offset{}, err
		}
		end, err := s.appendEvents(ctx, agent, opts, events, refs)
		var gone *kv.MissingBlobsError
		if !errors.As(err, &gone) {
			return end, err
		}
		// A collector removed a found blob: it counts as not stored yet.
	}
	return Offset{}, fmt.Errorf("append to agent %s: %w", agent, kv.ErrConflict)
}

func (s *Store) appendEvents(ctx context.Context, agent string, opts *AppendOptions, events []*stetv1.AgentEventRecord, refs []blob.ID) (Offset, error) {
	var end Offset
	_, err := s.update(ctx, agent, func(c *change) error {
		if at := findKey(c.rec, opts.Key); at != nil {
			end = offsetOf(at)
			return errUnchanged
		}
		if err := checkOpen(c.rec); err != nil {
			return fmt.Errorf("append to agent %s: %w", agent, err)
		}
		if err := checkHead(c.rec, opts.IfHead); err != nil {
			return fmt.Errorf("append to agent %s: %w", agent, err)
		}
		for _, e := range events {
			e.TimeMs = s.nowMS()
			if err := c.add(e); err != nil {
				return err
			}
		}
		c.refs = refs
		end = offsetOf(c.rec.Head)
		if opts.Key != "" {
			c.rec.Appends = append(c.rec.Appends, &stetv1.AppendKey{Key: opts.Key, End: c.rec.Head})
			c.rec.Appends = c.rec.Appends[max(0, len(c.rec.Appends)-keptKeys):]
		}
		return nil
	})
	return end, err
}

func checkHead(rec *stetv1.AgentRecord, want *Offset) error {
	if head := offsetOf(rec.Head); want != nil && *want != head {
		return fmt.Errorf("%w: its log ends at %s", ErrConflict, head)
	}
	return nil
}

func findKey(rec *stetv1.AgentRecord, key string) *stetv1.AgentPosition {
	if key == "" {
		return nil
	}
	for _, k := range rec.Appends {
		if k.Key == key {
			return k.End
		}
	}
	return nil
}

// StatusOptions configure a status change; nil gives the defaults.
type StatusOptions struct {
	// From, if not empty, lists the allowed current statuses, else ErrConflict.
	From []Status
}

// SetStatus changes the status of an agent and returns the place after the event.
// Setting the current status changes nothing. An archived or expired agent can be
// reactivated. Undefined numbers are rejected.
func (s *Store) SetStatus(ctx context.Context, agent string, status Status, opts *StatusOptions) (Offset, error) {
	if err := checkStatus(status); err != nil {
		return Offset{}, fmt.Errorf("set status of agent %s: %w", agent, err)
	}
	if opts == nil {
		opts = &StatusOptions{}
	}
	rec, err := s.update(ctx, agent, func(c *change) error {
		if len(opts.From) > 0 && !slices.Contains(opts.From, c.rec.Status) {
			return fmt.Errorf("set status of agent %s: %w: its status is %s", agent, ErrConflict, c.rec.Status)
		}
		if c.rec.Status == status {
			return errUnchanged
		}
		c.rec.Status, c.pointer = status, true
		return c.add(&stetv1.AgentEventRecord{TimeMs: s.nowMS(), Event: &stetv1.AgentEventRecord_Status{Status: status}})
	})
	if err != nil {
		return Offset{}, err
	}
	return offsetOf(rec.Head), nil
}
