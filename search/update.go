package search

import (
	"context"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/search/internal/corpus"
)

// Stats count what an update did.
type Stats struct {
	// Conversations counts changed conversations, Removed deleted ones.
	Conversations, Removed int
	// Messages counts messages added to the index.
	Messages int
	// Damaged lists conversations that can be read only in part; that part is
	// indexed.
	Damaged []string
}

// Update brings the index up to date with the named conversations or, without names,
// with all. It reads only what has changed, by any process. A damaged index is
// rebuilt.
func (ix *Index) Update(ctx context.Context, conversations ...string) (Stats, error) {
	stats, err := ix.updateOnce(ctx, conversations)
	if damaged(err) {
		stats, err = ix.updateOnce(ctx, nil) // the index is empty now
	}
	if err != nil {
		return stats, fmt.Errorf("update search index: %w", err)
	}
	return stats, nil
}

// Rebuild rebuilds the index.
func (ix *Index) Rebuild(ctx context.Context) (Stats, error) {
	err := ix.update(ctx, create)
	if err != nil && !damaged(err) {
		return Stats{}, fmt.Errorf("rebuild search index: %w", err)
	}
	return ix.Update(ctx)
}

func (ix *Index) updateOnce(ctx context.Context, ids []string) (Stats, error) {
	var stats Stats
	stale, err := ix.stale(ctx, ids)
	if err != nil {
		return stats, err
	}
	for _, id := range ids {
		if _, ok := stale[id]; ok {
			continue
		}
		m, err := ix.source.MarksOf(ctx, id)
		if conversation.Damaged(err) {
			stats.Damaged = append(stats.Damaged, id)
			continue
		}
		if err != nil {
			return stats, err
		}
		stale[id] = m
	}
	for _, id := range order(stale) {
		err := ix.update(ctx, func(c *conn) error {
			return c.write(func() error { return ix.one(ctx, c, id, stale[id], &stats) })
		})
		if err != nil {
			return stats, fmt.Errorf("conversation %s: %w", id, err)
		}
	}
	return stats, nil
}

func order(stale map[string]corpus.Marks) []string {
	ids := make([]string, 0, len(stale))
	for id := range stale {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// stale returns the conversations that have changed. If ids are given, it considers
// only those.
func (ix *Index) stale(ctx context.Context, ids []string) (map[string]corpus.Marks, error) {
	if len(ids) > 0 {
		return make(map[string]corpus.Marks), nil
	}
	var known []corpus.Known
	err := ix.find(ctx, func(c *conn) error {
		return c.query("SELECT id, listed, listed_version, record_version, tips FROM conv", func(s *sqlite3.Stmt) {
			known = append(known, corpus.Known{
				ID: s.ColumnText(0), Tips: s.ColumnText(4),
				Marks: corpus.Marks{Listed: s.ColumnText(1), ListedVersion: uint64(s.ColumnInt64(2)), RecordVersion: uint64(s.ColumnInt64(3))},
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return ix.source.Stale(ctx, known)
}
