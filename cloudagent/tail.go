package cloudagent

import (
	"context"

	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
)

// The end of a log that streams share. Its state is the record of the agent at that
// end, or nil if that is unknown at the moment.
type (
	tails    = lane.Tails[Offset, *entry, *stetv1.AgentRecord]
	follows  = lane.Follower[Offset, *entry, *stetv1.AgentRecord]
	tailView = lane.View[*entry, *stetv1.AgentRecord]
	tailPart = lane.Part[Offset, *entry, *stetv1.AgentRecord]
)

// errForeign makes a tail start over, since the log now has another history.
var errForeign = fault.New(fault.Stale, "the log has another history")

// follow joins the tail of an agent.
func (s *Store) follow(agent string) *follows {
	return s.tails.Follow(agent, lane.Source[Offset, *entry, *stetv1.AgentRecord]{
		Watch: func(ctx context.Context) <-chan struct{} {
			return s.rows.Watch(ctx, keyspace.AgentEvents(agent, 0))
		},
		Start: func(ctx context.Context) (Offset, *stetv1.AgentRecord, error) {
			rec, err := s.record(ctx, agent)
			return offsetOf(rec.GetHead()), rec, err
		},
		Read: func(ctx context.Context, after Offset, rec *stetv1.AgentRecord, quiet bool) (tailPart, error) {
			return s.readTail(ctx, agent, after, rec, quiet)
		},
		Poll: s.opts.Poll,
	})
}

func (s *Store) record(ctx context.Context, agent string) (*stetv1.AgentRecord, error) {
	l := s.lane(agent)
	defer s.release(l)
	now, err := s.load(ctx, l)
	return now.rec, err
}

// readTail reads what follows a place. The record is read only if the status may have
// changed, and from time to time to notice a log that was replaced.
func (s *Store) readTail(ctx context.Context, agent string, after Offset, rec *stetv1.AgentRecord, quiet bool) (tailPart, error) {
	events, ok, err := s.read(ctx, agent, after)
	if err != nil && len(events) == 0 {
		return tailPart{}, err
	}
	if !ok {
		return tailPart{}, errForeign
	}
	part := tailPart{State: rec, More: err != nil} // the next read has only the error
	size, status := 0, rec == nil
	for _, e := range events {
		part.Entries = append(part.Entries, lane.Entry[Offset, *entry]{
			End: e.at, Weight: 4*len(e.bytes) + 1024, // as it is, decoded, and encoded
			Value: &entry{event: e, before: after, agent: agent, shared: true},
		})
		after = e.at
		size += len(e.bytes)
		_, changes := e.rec.Event.(*stetv1.AgentEventRecord_Status)
		status = status || changes
	}
	part.More = part.More || len(events) == batchRows || size > batchBytes
	if !status && !quiet {
		return part, nil
	}
	now, err := s.record(ctx, agent)
	if err != nil {
		return tailPart{}, err
	}
	where, err := s.compare(ctx, now, after)
	switch {
	case err != nil:
		return tailPart{}, err
	case where == foreign:
		return tailPart{}, errForeign
	case where == atEnd:
		part.State, part.Changed = now, rec == nil || rec.Status != now.Status
	case len(events) == 0:
		// The record is committed with its events, so they are visible now.
		if events, _, err := s.read(ctx, agent, after); err != nil || len(events) == 0 {
			return tailPart{}, dataLoss(agent, "event %d of %d is missing", after.Seq+1, now.Head.GetSeq())
		}
		part.More = true
	default:
		part.More = true
		if status {
			part.State = nil // until the events up to the record are read
		}
	}
	return part, nil
}
