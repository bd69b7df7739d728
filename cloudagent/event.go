package cloudagent

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// recordFormat is the format of our rows that this release reads and writes.
const recordFormat = 1

// tagSize is the length of the tag that a row of the log begins with.
const tagSize = 8

// event is a row of the log.
type event struct {
	at    Offset // the place after it
	bytes []byte // bytes covered by the tag
	rec   *stetv1.AgentEventRecord
}

// follows reports whether the event is the one after a place.
func (e event) follows(o Offset) bool { return o.next(e.bytes) == e.at }

// encodeEvent returns the row of an event after the place prev.
func encodeEvent(agent string, prev Offset, rec *stetv1.AgentEventRecord) (kv.Set, Offset, error) {
	rec.Format, rec.Seq = recordFormat, prev.Seq+1
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(make([]byte, tagSize), rec)
	if err != nil {
		return kv.Set{}, Offset{}, fmt.Errorf("encode event %d of %s: %w", rec.Seq, agent, err)
	}
	at := prev.next(value[tagSize:])
	binary.BigEndian.PutUint64(value, at.Tag)
	return kv.Set{Key: keyspace.AgentEvent(agent, at.Seq), Value: value}, at, nil
}

func decodeEvent(row kv.Row) (event, error) {
	if len(row.Value) < tagSize {
		return event{}, fmt.Errorf("%w: row %q has %d bytes", kv.ErrCorrupt, row.Key, len(row.Value))
	}
	e := event{bytes: row.Value[tagSize:], rec: new(stetv1.AgentEventRecord)}
	if err := proto.Unmarshal(e.bytes, e.rec); err != nil {
		return event{}, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	if err := rowformat.Check(row.Key, e.rec.Format, recordFormat); err != nil {
		return event{}, err
	}
	n, err := keyspace.ParseNumber(keyspace.Last(row.Key))
	if err != nil || n != e.rec.Seq || n == 0 || n > maxSeq {
		return event{}, fmt.Errorf("%w: row %q says event %d", kv.ErrCorrupt, row.Key, e.rec.Seq)
	}
	e.at = Offset{Seq: n, Tag: binary.BigEndian.Uint64(row.Value)}
	return e, nil
}
