package conversation

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// rewritePage is the number of rows that one commit of Rewrite changes.
const rewritePage = 1000

// Rewriting returns the new value of a row and the blobs that only the new value names,
// or nil if the row stays as it is.
type Rewriting func(row kv.Row) (value []byte, refs []blob.ID, err error)

// Rewrite changes rows of a conversation in place: its record, its head, the heads of its
// messages and its history. It is for removing content from a whole history; everything
// else appends. Each commit opens a new epoch, so that a writer that still holds the old
// state fails with ErrStale instead of saving it again. A crash leaves some rows changed
// and others not; calling it again changes the rest. It returns how many rows it changed.
func (s *Store) Rewrite(ctx context.Context, id string, change Rewriting) (changed int, err error) {
	conflicts := 0
	for {
		b, n, err := s.rewriting(ctx, id, change)
		if err != nil || n == 0 {
			return changed, err
		}
		err = s.rows.Commit(ctx, b)
		if errors.Is(err, kv.ErrConflict) && conflicts < attempts {
			conflicts++
			continue // a save or another writer in between
		}
		if err != nil {
			return changed, fmt.Errorf("rewrite conversation %s: %w", id, err)
		}
		changed, conflicts = changed+n, 0
	}
}

// rewriting returns the next commit and the number of rows that it changes.
func (s *Store) rewriting(ctx context.Context, id string, change Rewriting) (*kv.Batch, int, error) {
	rec, version, err := s.record(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	key := keyspace.Conversation(id)
	b := &kv.Batch{Expect: []kv.Expect{{Key: key, Version: version}}}
	n := 0
	own, err := s.rows.Get(ctx, key)
	if err != nil {
		return nil, 0, fmt.Errorf("rewrite conversation %s: %w", id, err)
	}
	value, refs, err := change(own)
	if err != nil {
		return nil, 0, err
	}
	if value != nil {
		before := proto.CloneOf(rec)
		if err := proto.Unmarshal(value, rec); err != nil {
			return nil, 0, invalid("the new record of conversation %s: %v", id, err)
		}
		if err := s.refiled(ctx, before, rec, b); err != nil {
			return nil, 0, err
		}
		b.Refs = append(b.Refs, refs...)
		n++
	}
	add := func(row kv.Row) error {
		value, refs, err := change(row)
		if err != nil || value == nil {
			return err
		}
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: value})
		b.Refs = append(b.Refs, refs...)
		n++
		return nil
	}
	// The head and the latest save belong together. The head is read by its key: a scan
	// does not find that of an archived conversation.
	head, err := s.rows.Get(ctx, keyspace.Head(id))
	if err == nil {
		err = add(head)
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, 0, fmt.Errorf("rewrite conversation %s: %w", id, err)
	}
	for _, part := range []kv.Range{keyspace.Saves(id), keyspace.MessageHeads(id)} {
		for row, err := range kv.Each(ctx, s.rows, part, true) {
			if n >= rewritePage {
				break
			}
			if err == nil {
				err = add(row)
			}
			if err != nil {
				return nil, 0, fmt.Errorf("rewrite conversation %s: %w", id, err)
			}
		}
	}
	if n == 0 {
		return nil, 0, nil
	}
	rec.Epoch++
	rec.Writer = newWriter()
	fenced, err := marshal(rec)
	b.Set = append(b.Set, kv.Set{Key: key, Value: fenced}, changed(id))
	return b, n, err
}
