package thread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/kept"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Options configure a Store; nil means all defaults.
type Options struct {
	// Now is the clock, for tests.
	Now func() time.Time
}

// Store keeps threads. It is safe for concurrent use, and several processes may use
// the same rows.
type Store struct {
	blobs blob.Store
	rows  kv.Store
	now   func() time.Time

	maxRead int64 // see Limited
}

// New returns the threads in blobs and rows. A commit to rows must make the blobs
// that it names durable in blobs.
func New(blobs blob.Store, rows kv.Store, opts *Options) *Store {
	s := &Store{blobs: blobs, rows: rows, now: time.Now}
	if opts != nil && opts.Now != nil {
		s.now = opts.Now
	}
	return s
}

// Limited returns the same threads for a reader with little memory: contents of a frame
// that make it larger than max bytes, or whose size is unknown, are left as blobs.
func (s *Store) Limited(max int64) *Store {
	limited := *s
	limited.maxRead = max
	return &limited
}

// Put stores a frame with its values in one commit. It replaces a frame with the same
// key.
func (s *Store) Put(ctx context.Context, f NewFrame) error {
	if err := f.check(); err != nil {
		return err
	}
	parent, err := s.parent(ctx, f)
	if err != nil {
		return err
	}
	var add kept.Additions
	rec := &stetv1.FrameRecord{Format: recordFormat, Parent: f.Parent, CreatedMs: max(0, s.now().UnixMilli()), Metadata: f.Metadata}
	rec.Body = add.Keep(f.Body.kept(), parent.Body.kept(), kept.InsideAlone)
	for _, name := range slices.Sorted(maps.Keys(f.Versions)) {
		before := parent.Channels[name]
		channel := &stetv1.KeptChannel{Name: name, Version: f.Versions[name]}
		if value, ok := f.Values[name]; ok {
			channel.Value = add.Keep(value.kept(), before.Value.kept(), kept.InsideRepeated)
		} else if _, ok := parent.Channels[name]; ok && before.Version == channel.Version {
			channel.Value = add.Keep(before.Value.kept(), before.Value.kept(), kept.InsideRepeated)
		} else {
			continue
		}
		rec.Channels = append(rec.Channels, channel)
	}
	set, err := rowformat.Set(keyspace.Frame(f.Thread, f.Namespace, f.ID), rec)
	if err != nil {
		return err
	}
	return add.Commit(ctx, s.blobs, s.rows, &kv.Batch{Set: []kv.Set{set}})
}

// parent returns the frame whose values a new one keeps, empty if there is none. An
// unreadable parent is an error, because its values would be missing from then on.
func (s *Store) parent(ctx context.Context, f NewFrame) (Frame, error) {
	if f.Parent == "" {
		return Frame{}, nil
	}
	row, err := s.rows.Get(ctx, keyspace.Frame(f.Thread, f.Namespace, f.Parent))
	if errors.Is(err, kv.ErrNotFound) {
		return Frame{}, nil
	}
	if err != nil {
		return Frame{}, fmt.Errorf("read frame %s: %w", f.Parent, err)
	}
	return decodeFrame(row)
}

// PutWrites stores what a task wrote on top of a frame, which need not exist yet. Only
// Index, Channel and Value of the writes are used.
func (s *Store) PutWrites(ctx context.Context, key Key, task, path string, writes []Write) error {
	if err := key.check(); err != nil {
		return err
	}
	if err := checkID("task", task); err != nil {
		return err
	}
	sets := make(map[int32]kv.Set, len(writes))
	var add kept.Additions
	for _, w := range writes {
		if len(w.Channel) > maxName || len(w.Type) > maxName || len(path) > 4*maxName {
			return invalid("a name in write %d of task %.40q is too long", w.Index, task)
		}
		if _, again := sets[w.Index]; again && w.Index >= 0 {
			continue // the first one counts
		}
		set, err := rowformat.Set(
			keyspace.FrameWrite(key.Thread, key.Namespace, key.ID, task, w.Index),
			&stetv1.FrameWriteRecord{Format: recordFormat, Channel: w.Channel, Path: path, Value: add.Keep(w.Value.kept(), kept.Value{}, kept.InsideAlone)},
		)
		if err != nil {
			return err
		}
		sets[w.Index] = set
	}
	return lane.Retry(ctx, func() error {
		expect, err := s.unwritten(ctx, sets)
		if err != nil || len(sets) == 0 {
			return err
		}
		return add.Commit(ctx, s.blobs, s.rows, &kv.Batch{Set: slices.Collect(maps.Values(sets)), Expect: expect})
	})
}

// unwritten drops the writes that exist already and are not replaced. It returns the
// conditions under which the others do not exist.
func (s *Store) unwritten(ctx context.Context, sets map[int32]kv.Set) ([]kv.Expect, error) {
	var expect []kv.Expect
	for index, set := range sets {
		if index < 0 {
			continue
		}
		_, err := s.rows.Get(ctx, set.Key)
		switch {
		case errors.Is(err, kv.ErrNotFound):
			expect = append(expect, kv.Expect{Key: set.Key})
		case err != nil:
			return nil, fmt.Errorf("read write %q: %w", set.Key, err)
		default:
			delete(sets, index)
		}
	}
	return expect, nil
}

// Get returns a frame with its contents and writes. Without an id it returns the
// latest one of the namespace, which has the greatest id.
func (s *Store) Get(ctx context.Context, key Key) (Frame, error) {
	if key.ID == "" {
		latest, err := s.latest(ctx, key)
		if err != nil {
			return Frame{}, err
		}
		key = latest
	}
	if err := key.check(); err != nil {
		return Frame{}, err
	}
	row, err := s.rows.Get(ctx, keyspace.Frame(key.Thread, key.Namespace, key.ID))
	if errors.Is(err, kv.ErrNotFound) {
		return Frame{}, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	if err != nil {
		return Frame{}, fmt.Errorf("read frame %s: %w", key, err)
	}
	f, err := decodeFrame(row)
	if err != nil {
		return Frame{}, err
	}
	return f, s.load(ctx, &f)
}

// latest returns the key of the frame with the greatest id.
func (s *Store) latest(ctx context.Context, key Key) (Key, error) {
	key.ID = "latest" // for the check
	if err := key.check(); err != nil {
		return Key{}, err
	}
	for row, err := range s.rows.Scan(ctx, keyspace.Frames(key.Thread, key.Namespace), kv.ScanOptions{Reverse: true, Limit: 1, KeysOnly: true}) {
		if err != nil {
			return Key{}, fmt.Errorf("read thread %s: %w", key.Thread, err)
		}
		key, ok := keyOf(row.Key)
		if !ok {
			return Key{}, corrupt(row, "not the key of a frame")
		}
		return key, nil
	}
	return Key{}, fmt.Errorf("%w: thread %s has none in namespace %q", ErrNotFound, key.Thread, key.Namespace)
}

// load reads the contents and the writes of a frame.
func (s *Store) load(ctx context.Context, f *Frame) error {
	for row, err := range s.rows.Scan(ctx, keyspace.FrameWrites(f.Thread, f.Namespace, f.ID), kv.ScanOptions{}) {
		var w Write
		if err == nil {
			w, err = decodeWrite(row)
		}
		if err != nil {
			return fmt.Errorf("read writes of frame %s: %w", f.Key, err)
		}
		f.Writes = append(f.Writes, w)
	}
	room := s.maxRead
	return blob.ReadMany(ctx, s.blobs, func(from blob.Reader) error {
		read := func(what string, v *Value) error {
			if v.Blob.IsZero() || s.maxRead > 0 && (v.size == 0 || v.size > room) {
				return nil
			}
			room -= v.size
			data, err := from.Get(ctx, v.Blob)
			if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
				return fmt.Errorf("%w: %s of %s: %w", ErrDataLoss, what, f.Key, err)
			}
			v.Data = data
			return err
		}
		if err := read("the body", &f.Body); err != nil {
			return err
		}
		for name, channel := range f.Channels {
			if err := read("channel "+name, &channel.Value); err != nil {
				return err
			}
			f.Channels[name] = channel
		}
		for i := range f.Writes {
			if err := read("a write to "+f.Writes[i].Channel, &f.Writes[i].Value); err != nil {
				return err
			}
		}
		return nil
	})
}
