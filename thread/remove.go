package thread

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Delete removes a thread with all its frames and writes in one commit. It is not an
// error if there is none.
func (s *Store) Delete(ctx context.Context, thread string) error {
	if err := checkID("thread", thread); err != nil {
		return err
	}
	return s.rows.Commit(ctx, &kv.Batch{DeleteRange: []kv.Range{keyspace.ThreadFrames(thread), keyspace.ThreadWrites(thread)}})
}

// Prune removes all frames of a thread but the latest one of each namespace, with their
// writes. It returns how many frames it removed.
func (s *Store) Prune(ctx context.Context, thread string) (int, error) {
	if err := checkID("thread", thread); err != nil {
		return 0, err
	}
	var remove []Key
	var last Key
	for row, err := range s.rows.Scan(ctx, keyspace.ThreadFrames(thread), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return 0, fmt.Errorf("read thread %s: %w", thread, err)
		}
		k, ok := keyOf(row.Key)
		if !ok {
			continue
		}
		// Keys are in order, so the latest of a namespace comes last.
		if last != (Key{}) && last.Namespace == k.Namespace {
			remove = append(remove, last)
		}
		last = k
	}
	return s.remove(ctx, remove)
}

// DeleteRuns removes the frames that runs made, with their writes: those whose metadata
// has one of the runs as run_id. It reads all frames of the store and returns how many it
// removed. Frames that cannot be read stay, and are an error.
func (s *Store) DeleteRuns(ctx context.Context, runs []string) (int, error) {
	var remove []Key
	var unread error
	for row, err := range kv.Each(ctx, s.rows, keyspace.AllFrames(), false) {
		var f Frame
		if err == nil {
			f, err = decodeFrame(row)
		}
		if err != nil {
			if unread = err; row.Key == "" {
				return 0, err
			}
			continue
		}
		if run := runOf(f.Metadata); run != "" && slices.Contains(runs, run) {
			remove = append(remove, f.Key)
		}
	}
	n, err := s.remove(ctx, remove)
	if err == nil {
		err = unread
	}
	return n, err
}

// removeAtOnce is how many frames one commit removes.
const removeAtOnce = 100

func (s *Store) remove(ctx context.Context, keys []Key) (int, error) {
	removed := 0
	for some := range slices.Chunk(keys, removeAtOnce) {
		b := &kv.Batch{}
		for _, k := range some {
			b.Delete = append(b.Delete, keyspace.Frame(k.Thread, k.Namespace, k.ID))
			b.DeleteRange = append(b.DeleteRange, keyspace.FrameWrites(k.Thread, k.Namespace, k.ID))
		}
		if err := s.rows.Commit(ctx, b); err != nil {
			return removed, err
		}
		removed += len(some)
	}
	return removed, nil
}

// Copy copies all frames and writes of a thread to another one, replacing those with
// the same id there. It returns how many frames there were. Writes are copied first
// and frames in order, so that after an error or a crash each copied frame is
// complete; a second call copies the rest.
func (s *Store) Copy(ctx context.Context, from, to string) (int, error) {
	if err := checkID("thread", from); err != nil {
		return 0, err
	}
	if err := checkID("thread", to); err != nil {
		return 0, err
	}
	if from == to {
		return 0, invalid("a thread cannot be copied to itself")
	}
	if _, err := s.copyRows(ctx, keyspace.ThreadWrites(from), func(row kv.Row) (kv.Set, []Value, error) {
		w, err := decodeWrite(row)
		if err != nil {
			return kv.Set{}, nil, err
		}
		p := keyspace.Parts(row.Key)
		return kv.Set{Key: keyspace.FrameWrite(to, p[3], p[4], w.Task, w.Index), Value: row.Value}, []Value{w.Value}, nil
	}); err != nil {
		return 0, err
	}
	return s.copyRows(ctx, keyspace.ThreadFrames(from), func(row kv.Row) (kv.Set, []Value, error) {
		f, err := decodeFrame(row)
		values := []Value{f.Body}
		for _, c := range f.Channels {
			values = append(values, c.Value)
		}
		return kv.Set{Key: keyspace.Frame(to, f.Namespace, f.ID), Value: row.Value}, values, err
	})
}

// copyAtOnce is how many rows one commit copies.
const copyAtOnce = 100

func (s *Store) copyRows(ctx context.Context, in kv.Range, moved func(kv.Row) (kv.Set, []Value, error)) (int, error) {
	copied := 0
	b := &kv.Batch{}
	flush := func() error {
		if len(b.Set) == 0 {
			return nil
		}
		if err := s.rows.Commit(ctx, b); err != nil {
			return err
		}
		copied += len(b.Set)
		b = &kv.Batch{}
		return nil
	}
	for row, err := range kv.Each(ctx, s.rows, in, false) {
		if err != nil {
			return copied, err
		}
		set, values, err := moved(row)
		if err != nil {
			return copied, err
		}
		b.Set = append(b.Set, set)
		for _, v := range values {
			b.Refs = appendBlob(b.Refs, v)
		}
		if len(b.Set) == copyAtOnce {
			if err := flush(); err != nil {
				return copied, err
			}
		}
	}
	err := flush()
	return copied, err
}
