package thread

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Query selects frames; the zero value means all of them.
type Query struct {
	// Thread is empty for all threads.
	Thread string
	// Namespace is nil for all namespaces.
	Namespace *string
	// Before leaves out frames whose id is not smaller than this one.
	Before string
	// Filter is a JSON object: it selects frames whose metadata has its fields with
	// equal values. It is at most as long as metadata may be, 64 KiB.
	Filter []byte
	// After continues a list after the last frame of an earlier one.
	After Key
}

// List yields frames with their contents and writes, those with the greatest ids
// first. A frame that cannot be read is yielded as its key with an error, and the
// list continues; an error without a key ends it. Frames that are put meanwhile may
// or may not be seen. A query that names thread and namespace reads only what it
// yields; others read the keys of all matching frames.
func (s *Store) List(ctx context.Context, q Query) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		filter, err := q.check()
		if err != nil {
			yield(Frame{}, err)
			return
		}
		for row, err := range s.selected(ctx, q) {
			f := Frame{}
			if err == nil {
				f, err = decodeFrame(row)
			} else if row.Key != "" {
				f.Key, _ = keyOf(row.Key)
			}
			if err == nil && !matches(f.Metadata, filter) {
				continue
			}
			if err == nil {
				err = s.load(ctx, &f)
			}
			if err != nil {
				f = Frame{Key: f.Key}
			}
			if !yield(f, err) || err != nil && (f.Key == Key{} || ctx.Err() != nil) {
				return
			}
		}
	}
}

func (q *Query) check() (map[string][]byte, error) {
	if q.Thread != "" {
		if err := checkID("thread", q.Thread); err != nil {
			return nil, err
		}
	}
	return filterOf(q.Filter)
}

// selected yields the rows of a query, but for its filter.
func (s *Store) selected(ctx context.Context, q Query) iter.Seq2[kv.Row, error] {
	if q.Thread != "" && q.Namespace != nil {
		in := before(keyspace.Frames(q.Thread, *q.Namespace), q.Thread, *q.Namespace, q.Before)
		return kv.Each(ctx, s.rows, before(in, q.Thread, *q.Namespace, q.After.ID), true)
	}
	return s.merged(ctx, q)
}

// window is how many keys merged keeps at once.
const window = 256

// merged orders frames of several threads or namespaces. It reads all keys for each
// window, which takes time and no memory.
func (s *Store) merged(ctx context.Context, q Query) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for {
			keys, err := s.window(ctx, q)
			if err != nil {
				yield(kv.Row{}, err)
				return
			}
			for _, k := range keys {
				row, err := s.rows.Get(ctx, keyspace.Frame(k.Thread, k.Namespace, k.ID))
				if errors.Is(err, kv.ErrNotFound) {
					continue // deleted since its key was read
				}
				if err != nil {
					row.Key = keyspace.Frame(k.Thread, k.Namespace, k.ID)
				}
				if !yield(row, err) {
					return
				}
				q.After = k
			}
			if len(keys) < window {
				return
			}
			q.After = keys[len(keys)-1]
		}
	}
}

// window returns the first keys of a query in its order.
func (s *Store) window(ctx context.Context, q Query) ([]Key, error) {
	in := keyspace.AllFrames()
	if q.Thread != "" {
		in = keyspace.ThreadFrames(q.Thread)
	}
	var first []Key
	for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, err
		}
		k, ok := keyOf(row.Key)
		switch {
		case !ok || q.Namespace != nil && k.Namespace != *q.Namespace:
			continue
		case q.Before != "" && k.ID >= q.Before, q.After != Key{} && later(k, q.After) <= 0:
			continue
		case len(first) == window && later(k, first[window-1]) > 0:
			continue
		}
		at, _ := slices.BinarySearchFunc(first, k, later)
		first = slices.Insert(first, at, k)
		first = first[:min(len(first), window)]
	}
	return first, nil
}

// Threads returns the ids of at most limit threads, in the order of their keys,
// starting after a given one.
func (s *Store) Threads(ctx context.Context, after string, limit int) ([]string, error) {
	var threads []string
	in := keyspace.AllFrames()
	if after != "" {
		in.Start = keyspace.ThreadFrames(after).End
	}
	for len(threads) < limit {
		key := ""
		for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{Limit: 1, KeysOnly: true}) {
			if err != nil {
				return nil, err
			}
			key = row.Key
		}
		if key == "" {
			break
		}
		thread := keyspace.Parts(key)[2]
		threads = append(threads, thread)
		in.Start = keyspace.ThreadFrames(thread).End
	}
	return threads, nil
}
