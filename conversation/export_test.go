package conversation

import (
	"context"
	"encoding/hex"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// SetFew makes lists of more than n conversations of a span walk through the list of all.
func SetFew(n int) (restore func()) {
	before := few
	few = n
	return func() { few = before }
}

// FiltersKey is the row with the salt.
var FiltersKey = filtersKey

// Unspan replaces the rows of filters by those of an earlier release, which had no spans.
func (s *Store) Unspan(ctx context.Context) error {
	f, err := s.readFilters(ctx)
	if err != nil || f == nil {
		return err
	}
	b := &kv.Batch{
		DeleteRange: []kv.Range{keyspace.AllConversationsOf()},
		Set:         []kv.Set{{Key: filtersKey, Value: []byte(hex.EncodeToString(f.salt) + " built")}},
	}
	for row, err := range s.rows.Scan(ctx, keyspace.Conversations(), kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		rec, err := decodeConversation(row)
		if err != nil {
			return err
		}
		for _, key := range f.earlier(rec) {
			b.Set = append(b.Set, kv.Set{Key: key})
		}
	}
	return s.rows.Commit(ctx, b)
}

// FileFirst begins to file a store, with one conversation.
func FileFirst(ctx context.Context, s *Store) error {
	s.filters.Store(nil)
	return s.addFilters(ctx, 1)
}
