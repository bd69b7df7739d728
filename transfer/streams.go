package transfer

import (
	"bytes"
	"context"
	"fmt"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/stream"
)

// streams moves streams: first the appends that the target lacks, which are not visible
// yet, and then the records, so that a fork never comes before what it inherits. If the
// target has a different stream in its place, or the stream was continued there, it is
// left alone.
func (m *mover) streams(ctx context.Context) error {
	var ready []string
	for row, err := range m.from.Rows.Scan(ctx, keyspace.Streams(), kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		if err := stream.CheckRow(row); err != nil {
			m.leave("stream %s, which is damaged", keyspace.Last(row.Key))
			m.damaged = append(m.damaged, err)
			continue
		}
		ok, err := m.appends(ctx, row)
		if err != nil {
			return fmt.Errorf("stream %s: %w", keyspace.Last(row.Key), err)
		}
		if ok {
			ready = append(ready, row.Key)
		}
	}
	for _, key := range ready {
		if err := m.streamRecord(ctx, key); err != nil {
			return fmt.Errorf("stream %s: %w", keyspace.Last(key), err)
		}
	}
	return nil
}

// appends moves the appends of a stream up to its end. ok is false if the stream stays.
func (m *mover) appends(ctx context.Context, row kv.Row) (ok bool, err error) {
	rec, there := new(stetv1.StreamRecord), new(stetv1.StreamRecord)
	if err := decode(row, rec); err != nil {
		return false, err
	}
	old, err := get(ctx, m.to.Rows, row.Key)
	if err != nil {
		return false, err
	}
	if old.Version != 0 {
		if err := decode(old, there); err != nil {
			return false, err
		}
		switch {
		case there.Id != rec.Id:
			m.leave("stream %s, which is another one there", rec.Path)
			return false, nil
		case there.Tail.GetSeq() > rec.Tail.GetSeq() || there.Deleted && !rec.Deleted || there.Closed && !rec.Closed:
			m.leave("stream %s, which was continued there", rec.Path)
			return false, nil
		}
	}
	in := keyspace.StreamAppends(rec.Id, 0)
	in.End = keyspace.StreamAppend(rec.Id, rec.Tail.GetSeq()+1)
	last, err := lastRow(ctx, m.to.Rows, in)
	if err != nil {
		return false, err
	}
	if last.Key != "" {
		same, err := get(ctx, m.from.Rows, last.Key)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(same.Value, last.Value) {
			m.leave("stream %s, which was continued there", rec.Path)
			return false, nil
		}
		in.Start = last.Key + "\x00"
	}
	_, _, err = m.copyRows(ctx, in, false)
	return err == nil, err
}

// streamTries is how often a stream that changes while it is moved is read again.
const streamTries = 5

// streamRecord moves the record of a stream with its producers in one commit: a producer
// that is ahead of its appends would lose some. A stream that grew since its appends were
// moved is completed first.
func (m *mover) streamRecord(ctx context.Context, key string) error {
	for range streamTries {
		row, err := get(ctx, m.from.Rows, key)
		if err != nil || row.Version == 0 { // deleted since
			return err
		}
		rec := new(stetv1.StreamRecord)
		if err := decode(row, rec); err != nil {
			return err
		}
		if ok, err := m.appends(ctx, row); err != nil || !ok {
			return err
		}
		rows, err := m.changed(ctx, row, rec.Id)
		if err != nil {
			return err
		}
		if now, err := get(ctx, m.from.Rows, key); err != nil {
			return err
		} else if now.Version != row.Version {
			continue
		}
		return m.commitRows(ctx, rows)
	}
	m.leave("stream %s, which changes all the time", keyspace.Last(key))
	return nil
}

// changed returns those of a stream's record, its producers and its last read that differ
// at the target.
func (m *mover) changed(ctx context.Context, record kv.Row, id string) ([]kv.Row, error) {
	here, err := rowsIn(ctx, m.from.Rows, keyspace.StreamProducers(id))
	if err != nil {
		return nil, err
	}
	access, err := get(ctx, m.from.Rows, keyspace.StreamAccess(id))
	if err != nil {
		return nil, err
	}
	if here[record.Key] = record; access.Version != 0 {
		here[access.Key] = access
	}
	var rows []kv.Row
	for key, row := range here {
		there, err := get(ctx, m.to.Rows, key)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(row.Value, there.Value) {
			rows = append(rows, kv.Row{Key: key, Value: row.Value, Version: there.Version})
		}
	}
	return rows, nil
}
