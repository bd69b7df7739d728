package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Stats tell what an update did.
type Stats struct {
	// Conversations were looked at because they changed, Removed are gone.
	Conversations, Removed int
	// Messages were added to the index.
	Messages int
	// Damaged conversations cannot be read as a whole; what can be read of them is
	// found.
	Damaged []string
}

// marks tell whether a conversation changed since it was indexed. Rows that are
// written get a new version, also if two saves fall into one millisecond.
type marks struct {
	listed        string // key of the row that orders the conversation by time
	listedVersion uint64
	recordVersion uint64
}

// Update brings the index up to date with the named conversations or, without
// names, with all. It reads only what changed since, whoever changed it. If the
// index turns out to be damaged it is built again.
func (ix *Index) Update(ctx context.Context, conversations ...string) (Stats, error) {
	stats, err := ix.updateOnce(ctx, conversations)
	if damaged(err) {
		stats, err = ix.updateOnce(ctx, nil) // it is empty now
	}
	if err != nil {
		return stats, fmt.Errorf("update search index: %w", err)
	}
	return stats, nil
}

// Rebuild makes the index anew.
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
		m, err := ix.marksOf(ctx, id)
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

func order(stale map[string]marks) []string {
	ids := make([]string, 0, len(stale))
	for id := range stale {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// stale returns the conversations whose rows are not those that were indexed; a
// conversation that is gone has empty marks. Nothing is stale by itself if ids
// are given.
func (ix *Index) stale(ctx context.Context, ids []string) (map[string]marks, error) {
	if len(ids) > 0 {
		return make(map[string]marks), nil
	}
	live, err := ix.live(ctx)
	if err != nil {
		return nil, err
	}
	type unchanged struct {
		id, tips string
		marks    marks
	}
	var branched []unchanged
	err = ix.find(ctx, func(c *conn) error {
		return c.query("SELECT id, listed, listed_version, record_version, tips FROM conv", func(s *sqlite3.Stmt) {
			id := s.ColumnText(0)
			known := marks{s.ColumnText(1), uint64(s.ColumnInt64(2)), uint64(s.ColumnInt64(3))}
			if now, ok := live[id]; !ok {
				live[id] = marks{}
			} else if now == known {
				delete(live, id)
				if tips := s.ColumnText(4); tips != "[]" {
					branched = append(branched, unchanged{id, tips, known})
				}
			}
		})
	})
	if err != nil {
		return nil, err
	}
	for _, b := range branched {
		there, err := ix.branchesThere(ctx, b.id, b.tips)
		if err != nil {
			return nil, err
		}
		if !there {
			live[b.id] = b.marks
		}
	}
	return live, nil
}

// branchesThere reports whether the branches of a conversation are still there:
// a retention policy takes them without touching anything else.
func (ix *Index) branchesThere(ctx context.Context, id, tips string) (bool, error) {
	var seqs []uint64
	if err := json.Unmarshal([]byte(tips), &seqs); err != nil {
		return false, nil // to be written anew
	}
	for _, seq := range seqs {
		_, err := ix.rows.Get(ctx, keyspace.Save(id, seq))
		if errors.Is(err, kv.ErrNotFound) {
			return false, nil
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			return false, err
		}
	}
	return true, nil
}

// live returns the marks of all conversations. It reads no values.
func (ix *Index) live(ctx context.Context) (map[string]marks, error) {
	live := make(map[string]marks)
	for row, err := range ix.rows.Scan(ctx, keyspace.Conversations(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		live[keyspace.Last(row.Key)] = marks{recordVersion: row.Version}
	}
	for row, err := range ix.rows.Scan(ctx, keyspace.ByTimes(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		if m, ok := live[keyspace.Last(row.Key)]; ok {
			m.listed, m.listedVersion = row.Key, row.Version
			live[keyspace.Last(row.Key)] = m
		}
	}
	return live, nil
}

// marksOf returns the marks of one conversation, empty if it is gone. They are
// read before its state, so that a save in between makes the next update look
// again.
func (ix *Index) marksOf(ctx context.Context, id string) (marks, error) {
	var m marks
	row, err := ix.rows.Get(ctx, keyspace.Conversation(id))
	if errors.Is(err, kv.ErrNotFound) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	info, err := ix.conversations.Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	m.recordVersion = row.Version
	key := keyspace.ByTime(info.Updated.UnixMilli(), id)
	row, err = ix.rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return m, nil // saved again meanwhile: never equal, so looked at again
	}
	if err != nil {
		return m, err
	}
	m.listed, m.listedVersion = key, row.Version
	return m, nil
}
