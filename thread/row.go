package thread

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// recordFormat is the format of rows that this release reads and writes.
const recordFormat = 1

// Values up to these sizes are kept in the row: a blob would take more, with its names. A
// value of a channel is in the rows of all frames that keep it.
const (
	insideChannel = 64
	insideAlone   = 512 // bodies, and what tasks wrote
)

func corrupt(row kv.Row, why any) error {
	return fmt.Errorf("%w: row %q: %v", kv.ErrCorrupt, row.Key, why)
}

// decodeFrame returns a frame without the contents that are blobs, and without writes.
func decodeFrame(row kv.Row) (Frame, error) {
	key, ok := keyOf(row.Key)
	if !ok {
		return Frame{}, corrupt(row, "not the key of a frame")
	}
	rec := &stetv1.FrameRecord{}
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return Frame{Key: key}, err
	}
	f := Frame{Key: key, Parent: rec.GetParent(), Created: time.UnixMilli(rec.GetCreatedMs()), Metadata: rec.GetMetadata(), Channels: make(map[string]Channel, len(rec.GetChannels()))}
	if _, err := object(f.Metadata); err != nil {
		return f, corrupt(row, err)
	}
	var err error
	if f.Body, err = kept(rec.GetBody()); err != nil {
		return f, corrupt(row, err)
	}
	for _, c := range rec.GetChannels() {
		value, err := kept(c.GetValue())
		if err != nil {
			return f, corrupt(row, err)
		}
		if _, twice := f.Channels[c.GetName()]; twice {
			return f, corrupt(row, "a channel is there twice")
		}
		f.Channels[c.GetName()] = Channel{Version: c.GetVersion(), Value: value}
	}
	return f, nil
}

// decodeWrite returns a write without its content if that is a blob.
func decodeWrite(row kv.Row) (Write, error) {
	parts := keyspace.Parts(row.Key)
	if len(parts) != 7 {
		return Write{}, corrupt(row, "not the key of a write")
	}
	n, err := keyspace.ParseNumber(parts[6])
	if err != nil || n > 1<<32-1 {
		return Write{}, corrupt(row, "not the key of a write")
	}
	key := Key{Thread: parts[2], Namespace: parts[3], ID: parts[4]}
	w := Write{Task: parts[5], Index: int32(int64(n) - 1<<31)}
	if key.check() != nil || checkID("task", w.Task) != nil || keyspace.FrameWrite(key.Thread, key.Namespace, key.ID, w.Task, w.Index) != row.Key {
		return Write{}, corrupt(row, "not the key of a write")
	}
	rec := &stetv1.FrameWriteRecord{}
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return w, err
	}
	w.Path, w.Channel = rec.GetPath(), rec.GetChannel()
	if w.Value, err = kept(rec.GetValue()); err != nil {
		return w, corrupt(row, err)
	}
	return w, nil
}

// kept returns a value as its row has it.
func kept(v *stetv1.KeptValue) (Value, error) {
	value := Value{Type: v.GetType()}
	if len(v.GetBlob()) == 0 {
		value.Data = append([]byte{}, v.GetInside()...)
		return value, nil
	}
	id, err := blob.IDFromBytes(v.GetBlob())
	if err == nil && len(v.GetInside()) > 0 {
		err = errors.New("a value is a blob and inside")
	}
	value.Blob, value.size = id, int64(v.GetSize())
	if err == nil && value.size < 0 {
		err = errors.New("a value has a negative size")
	}
	return value, err
}

// keep returns a value as a row has it.
func keep(v Value) *stetv1.KeptValue {
	out := &stetv1.KeptValue{Type: v.Type}
	if v.Blob.IsZero() {
		out.Inside = v.Data
	} else {
		out.Blob, out.Size = v.Blob[:], uint64(v.size)
	}
	return out
}

// CheckRow returns the error that a reader of this package would return for a row, and
// accepts rows of other packages.
func CheckRow(row kv.Row) error {
	var err error
	switch {
	case keyspace.AllFrames().Contains(row.Key):
		_, err = decodeFrame(row)
	case keyspace.AllFrameWrites().Contains(row.Key):
		_, err = decodeWrite(row)
	}
	return err
}

// Roots yields the blobs that frames and writes keep, for a collector. For an unreadable
// row it yields an error and goes on.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.AllFrames(), false) {
			var f Frame
			if err == nil {
				f, err = decodeFrame(row)
			}
			if !yieldRoots(yield, row, err, f.blobs()) {
				return
			}
		}
		for row, err := range kv.Each(ctx, s.rows, keyspace.AllFrameWrites(), false) {
			var w Write
			if err == nil {
				w, err = decodeWrite(row)
			}
			if !yieldRoots(yield, row, err, appendBlob(nil, w.Value)) {
				return
			}
		}
	}
}

// yieldRoots reports whether the caller wants more.
func yieldRoots(yield func(graph.Root, error) bool, row kv.Row, err error, ids []blob.ID) bool {
	if err != nil {
		return yield(graph.Root{}, fmt.Errorf("read threads: %w", err)) && row.Key != ""
	}
	for _, id := range ids {
		if !yield(graph.Root{Kind: graph.Bytes, ID: id}, nil) {
			return false
		}
	}
	return true
}

// blobs returns the blobs that a frame refers to.
func (f *Frame) blobs() []blob.ID {
	ids := appendBlob(nil, f.Body)
	for _, c := range f.Channels {
		ids = appendBlob(ids, c.Value)
	}
	return ids
}

func appendBlob(ids []blob.ID, v Value) []blob.ID {
	if v.Blob.IsZero() {
		return ids
	}
	return append(ids, v.Blob)
}
