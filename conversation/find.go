package conversation

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lookup"
	"github.com/stet-dev/stet/kv"
)

// AmbiguousError says that several conversations match a name, and lists the first few.
type AmbiguousError = lookup.AmbiguousError

// shortest is the least number of bytes of a shortened id.
const shortest = 6

// Find returns the id of the conversation that a name stands for: its id, or a prefix
// that no other id has. Letters may be in another case. Damaged conversations are found,
// too. The error wraps ErrNotFound, or is an *AmbiguousError.
func (s *Store) Find(ctx context.Context, name string) (string, error) {
	id, err := lookup.Find(ctx, s.rows, keyspace.Conversation, name)
	if errors.Is(err, lookup.ErrNone) {
		return "", fmt.Errorf("conversation %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("find conversation: %w", err)
	}
	return id, nil
}

// IDs returns the ids of conversations that begin with a prefix, in order, at most
// limit; 0 means no limit.
func (s *Store) IDs(ctx context.Context, prefix string, limit int) ([]string, error) {
	ids, err := lookup.Begin(ctx, s.rows, keyspace.Conversation, prefix, limit)
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	return ids, nil
}

// ShortIDs returns, for each id, the prefix of at least six bytes that Find accepts for
// it.
func (s *Store) ShortIDs(ctx context.Context, ids ...string) (map[string]string, error) {
	short, err := lookup.Short(ctx, s.rows, keyspace.Conversation, keyspace.Conversations(), ids, shortest)
	if err != nil {
		return nil, fmt.Errorf("shorten ids: %w", err)
	}
	return short, nil
}

// Exists reports whether there is a conversation with that id, even a damaged one.
func (s *Store) Exists(ctx context.Context, id string) (bool, error) {
	ok, err := lookup.Exists(ctx, s.rows, keyspace.Conversation(id))
	if err != nil {
		return false, fmt.Errorf("look for conversation %s: %w", id, err)
	}
	return ok, nil
}

// Remains reports whether anything is stored of a conversation, even if its record is
// lost. Delete removes it.
func (s *Store) Remains(ctx context.Context, id string) (bool, error) {
	for _, key := range []string{keyspace.Conversation(id), keyspace.Head(id)} {
		if ok, err := lookup.Exists(ctx, s.rows, key); err != nil || ok {
			return ok, err
		}
	}
	for _, r := range []kv.Range{keyspace.Saves(id), keyspace.MessageHeads(id)} {
		for _, err := range s.rows.Scan(ctx, r, kv.ScanOptions{KeysOnly: true, Limit: 1}) {
			return err == nil, err
		}
	}
	return false, nil
}

// Count returns the number of conversations, damaged ones included.
func (s *Store) Count(ctx context.Context) (n int64, err error) {
	for _, err := range s.rows.Scan(ctx, keyspace.Conversations(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return n, fmt.Errorf("count conversations: %w", err)
		}
		n++
	}
	return n, nil
}

// Watch returns a channel that gets a value soon after a conversation may have been
// saved, until ctx is done. Hints can be lost, merged or wrong: read the history, and
// poll from time to time.
func (s *Store) Watch(ctx context.Context, id string) <-chan struct{} {
	return s.rows.Watch(ctx, keyspace.Saves(id))
}
