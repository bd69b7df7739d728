package cloudagent

import (
	"context"
	"errors"
	"fmt"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// batchRows is how many events a reader holds at once.
const batchRows = 256

// batchBytes ends a batch early if events are large.
const batchBytes = 4 << 20

// inLog reports whether a place is in the log of the given record.
func (s *Store) inLog(ctx context.Context, rec *stetv1.AgentRecord, at Offset) (bool, error) {
	head := offsetOf(rec.Head)
	switch {
	case at.Seq == 0:
		return at.Tag == rec.Epoch, nil
	case at.Seq > head.Seq:
		return false, nil
	case at.Seq == head.Seq:
		return at == head, nil
	}
	row, err := s.rows.Get(ctx, keyspace.AgentEvent(rec.Id, at.Seq))
	if errors.Is(err, kv.ErrNotFound) {
		return false, dataLoss(rec.Id, "event %d of %d is missing", at.Seq, head.Seq)
	}
	if err != nil {
		return false, fmt.Errorf("read event %d of agent %s: %w", at.Seq, rec.Id, err)
	}
	e, err := decodeEvent(row)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrDataLoss, err)
	}
	return e.at == at, nil
}

// read returns some of the events after a place, in order and without a gap, or none.
// ok is false if the events do not continue the place.
func (s *Store) read(ctx context.Context, agent string, after Offset) (events []event, ok bool, err error) {
	size := 0
	for row, err := range s.rows.Scan(ctx, keyspace.AgentEvents(agent, after.Seq+1), kv.ScanOptions{Limit: batchRows}) {
		if err != nil {
			return nil, false, fmt.Errorf("read log of agent %s: %w", agent, err)
		}
		e, err := decodeEvent(row)
		if errors.Is(err, ErrNewerFormat) {
			return events, len(events) > 0, err
		}
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrDataLoss, err)
		}
		if !e.follows(after) {
			// A concurrent commit may be visible in part: events after the gap are
			// read again later.
			return events, len(events) > 0, nil
		}
		events, after = append(events, e), e.at
		if size += len(e.bytes); size > batchBytes {
			break
		}
	}
	return events, true, nil
}

// position is the position of a reader relative to a log.
type position int

const (
	atEnd   position = iota // there is nothing more
	behind                  // there is more
	foreign                 // the log has a different history or is shorter
)

// compare returns the position of a reader that sees no event after its place.
func (s *Store) compare(ctx context.Context, rec *stetv1.AgentRecord, at Offset) (position, error) {
	ok, err := s.inLog(ctx, rec, at)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return foreign, nil
	case rec.Head.GetSeq() > at.Seq:
		return behind, nil
	}
	return atEnd, nil
}
