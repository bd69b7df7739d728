package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// DeleteOptions configure a deletion; nil gives the defaults.
type DeleteOptions struct {
	// Extend, if set, may add changes to the commit of the deletion. It can be called
	// more than once.
	Extend func(*kv.Batch) error
}

// Delete removes a conversation with its history, pointers and pins, in one commit.
// Its blobs stay until a collector finds them unneeded. A writer's next save fails
// with ErrNotFound. Rows are found by their keys, so a conversation that is
// unreadable or has lost its record can be removed. An unreadable pin stays, because
// its target is unknown. The same commit cuts off the session from which the
// conversation was copied; see Cutoff.
func (s *Store) Delete(ctx context.Context, id string, opts *DeleteOptions) error {
	return s.deleteIf(ctx, id, opts, nil)
}

// deleteIf removes a conversation if wanted returns true for its current save and
// whether it has pins; the commit checks that both still hold. Without wanted it
// removes the conversation even if it is unreadable.
func (s *Store) deleteIf(ctx context.Context, id string, opts *DeleteOptions, wanted func(last Save, pinned bool) bool) error {
	for range attempts {
		batch, err := s.deletion(ctx, id, wanted)
		if err != nil || batch == nil {
			return err
		}
		if opts != nil && opts.Extend != nil {
			if err := opts.Extend(batch); err != nil {
				return err
			}
		}
		err = s.rows.Commit(ctx, batch)
		if errors.Is(err, kv.ErrConflict) {
			continue // a save, a pin or a new title in between
		}
		if err != nil {
			return fmt.Errorf("delete conversation %s: %w", id, err)
		}
		return nil
	}
	return fmt.Errorf("delete conversation %s: %w", id, kv.ErrConflict)
}

// deletion returns nil if the conversation must stay.
func (s *Store) deletion(ctx context.Context, id string, wanted func(Save, bool) bool) (*kv.Batch, error) {
	found, err := s.remains(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("delete conversation %s: %w", id, err)
	}
	pins, noPin, err := s.pinsNow(ctx)
	if err != nil && (wanted != nil || !Damaged(err)) {
		return nil, err
	}
	pins = slices.DeleteFunc(pins, func(p Pin) bool { return p.Conversation != id })
	if wanted != nil {
		last, err := s.lastSave(ctx, id)
		if err != nil || !wanted(last, len(pins) > 0) {
			return nil, err
		}
	}
	b := &kv.Batch{
		Expect:      append(found.expect, noPin),
		DeleteRange: []kv.Range{keyspace.Saves(id), keyspace.MessageHeads(id), keyspace.JSONCheckpoints(id), keyspace.Execs(id)},
		Delete:      append(found.listed, keyspace.Conversation(id), keyspace.Head(id)),
	}
	if checkID("conversation", id) == nil { // no index has another one
		b.Set = []kv.Set{changed(id)}
	}
	if err := s.cutRemoved(ctx, id, b); err != nil {
		return nil, fmt.Errorf("delete conversation %s: %w", id, err)
	}
	for _, p := range pins {
		b.Delete = append(b.Delete, keyspace.Pin(p.Name))
	}
	return b, nil
}

// remains is what the keys show about a conversation.
type remains struct {
	expect []kv.Expect // fails if it changes
	listed []string    // the rows that list it
}

// remains fails with ErrNotFound if there is nothing. It reads keys and, to find the
// place in the list, the record and the current save, if readable.
func (s *Store) remains(ctx context.Context, id string) (remains, error) {
	record, next := keyspace.Conversation(id), uint64(1)
	if id == "" {
		return remains{}, invalid("conversation id is empty")
	}
	if err := kv.CheckKey(record); err != nil {
		return remains{}, err
	}
	var r remains
	there := false
	version := uint64(0)
	for _, in := range []kv.Range{only(record), only(keyspace.Head(id)), keyspace.MessageHeads(id), keyspace.Saves(id)} {
		for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true, Reverse: true, Limit: 1}) {
			if err != nil {
				return remains{}, err
			}
			there = true
			if row.Key == record {
				version = row.Version
			} else if n, err := keyspace.ParseNumber(keyspace.Last(row.Key)); err == nil && keyspace.Saves(id).Contains(row.Key) && n < MaxSeq {
				next = n + 1
			}
		}
	}
	if !there {
		return remains{}, fmt.Errorf("conversation %s: %w", id, ErrNotFound)
	}
	r.expect = []kv.Expect{{Key: record, Version: version}, {Key: keyspace.Save(id, next)}}
	var err error
	if r.listed, err = s.listedAt(ctx, id); err != nil {
		return r, err
	}
	filed, expect, err := s.filedAt(ctx, id)
	r.listed, r.expect = append(r.listed, filed...), append(r.expect, expect...)
	return r, err
}

// only is the range of one key.
func only(key string) kv.Range { return kv.Range{Start: key, End: key + "\x00"} }

// listedAt returns the keys of the rows that list a conversation. If its time is
// unreadable, or not the listed one, it searches the whole list.
func (s *Store) listedAt(ctx context.Context, id string) ([]string, error) {
	info, err := s.Get(ctx, id)
	if err == nil {
		key := keyspace.ByTime(info.Updated.UnixMilli(), id)
		if _, err = s.rows.Get(ctx, key); err == nil {
			return []string{key}, nil
		}
	}
	if !Damaged(err) && !errors.Is(err, ErrNotFound) && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	return s.keysOf(ctx, keyspace.ByTimes(), id)
}

// keysOf returns the keys of a range that end with an id.
func (s *Store) keysOf(ctx context.Context, in kv.Range, id string) (keys []string, err error) {
	for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, err
		}
		if keyspace.Last(row.Key) == id {
			keys = append(keys, row.Key)
		}
	}
	return keys, nil
}
