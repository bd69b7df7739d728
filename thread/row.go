package thread

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/kept"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// recordFormat is the format of rows that this release reads and writes.
const recordFormat = 1

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
	if f.Body, err = decodeValue(rec.GetBody()); err != nil {
		return f, corrupt(row, err)
	}
	for _, c := range rec.GetChannels() {
		value, err := decodeValue(c.GetValue())
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
	if w.Value, err = decodeValue(rec.GetValue()); err != nil {
		return w, corrupt(row, err)
	}
	return w, nil
}

// decodeValue returns a value as its row has it.
func decodeValue(v *stetv1.KeptValue) (Value, error) {
	value, err := kept.Decode(v)
	return Value{Type: value.Type, Data: value.Data, Blob: value.Blob, size: value.Size}, err
}

// kept returns a value for its row.
func (v Value) kept() kept.Value {
	return kept.Value{Type: v.Type, Data: v.Data, Blob: v.Blob, Size: v.size}
}

// CheckRow returns the error that a reader of this package would return for a row,
// and nil for rows of other packages.
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

// Roots yields the blobs that frames and writes refer to, for a collector. For an
// unreadable row it yields an error and continues.
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
