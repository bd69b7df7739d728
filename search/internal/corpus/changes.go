package corpus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Changes holds the changed conversations, by the rows that every commit of a change
// sets. An index that has seen all of them at these versions is up to date, unless some
// were trimmed since it last looked.
type Changes struct {
	// Rows has the version of the row of each conversation.
	Rows map[string]uint64
	// Trimmed is the version of the row that each trimming changes, 0 without one. An
	// index that knows another one must look at all conversations.
	Trimmed uint64
}

// trimmedKey is changed with every trimming.
var trimmedKey = keyspace.Setting("changes-trimmed")

// Changes returns the changes. Their rows are read last: a trimming in between shows in
// the next call.
func (s *Source) Changes(ctx context.Context) (Changes, error) {
	c := Changes{Rows: make(map[string]uint64)}
	var err error
	if c.Trimmed, err = s.trimmed(ctx); err != nil {
		return c, err
	}
	for row, err := range s.rows.Scan(ctx, keyspace.AllChanged(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return c, fmt.Errorf("list changes: %w", err)
		}
		c.Rows[keyspace.Last(row.Key)] = row.Version
	}
	return c, nil
}

// trimmed returns the version of the row that trimmings change. Its value means nothing,
// so that damage to it does not matter.
func (s *Source) trimmed(ctx context.Context) (version uint64, err error) {
	in := kv.Range{Start: trimmedKey, End: trimmedKey + "\x00"}
	for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return 0, fmt.Errorf("list changes: %w", err)
		}
		version = row.Version
	}
	return version, nil
}

// trimPage is how many rows one commit of Trim removes.
const trimPage = 500

// Trim removes changes that an index has seen, and returns the version after it. A
// conversation that was changed again keeps its row. All other indexes of the store look
// at all conversations once.
func (s *Source) Trim(ctx context.Context, seen map[string]uint64) (uint64, error) {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(seen)), trimPage) {
		b := &kv.Batch{Set: []kv.Set{{Key: trimmedKey}}}
		for _, id := range ids {
			key := keyspace.Changed(id)
			b.Expect, b.Delete = append(b.Expect, kv.Expect{Key: key, Version: seen[id]}), append(b.Delete, key)
		}
		if err := s.rows.Commit(ctx, b); err != nil && !errors.Is(err, kv.ErrConflict) {
			return 0, fmt.Errorf("trim changes: %w", err)
		}
	}
	return s.trimmed(ctx)
}

// Seen is Trim for an index that looks at everything that was not trimmed: a conversation
// that was changed again keeps its row, and all others lose theirs.
func (s *Source) Seen(ctx context.Context, seen map[string]uint64) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(seen)), trimPage) {
		for len(ids) > 0 {
			b := &kv.Batch{Set: []kv.Set{{Key: trimmedKey}}}
			for _, id := range ids {
				key := keyspace.Changed(id)
				b.Expect, b.Delete = append(b.Expect, kv.Expect{Key: key, Version: seen[id]}), append(b.Delete, key)
			}
			err := s.rows.Commit(ctx, b)
			if err == nil || errors.Is(err, blob.ErrReadOnly) {
				break
			}
			var conflict *kv.ConflictError
			if !errors.As(err, &conflict) {
				return fmt.Errorf("trim changes: %w", err)
			}
			rest := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return keyspace.Changed(id) == conflict.Key })
			if len(rest) == len(ids) {
				break // the next update tries again
			}
			ids = rest
		}
	}
	return nil
}
