package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
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

// Update brings the index up to date with the named conversations or, without names, with
// all. It reads only what has changed, by any process; an index that is new, or that
// missed changes, looks at every conversation once. An interrupted update keeps what it
// has done. A damaged index is rebuilt.
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

// Progress implements Searcher.
func (ix *Index) Progress() (done, total int) {
	return int(ix.done.Load()), int(ix.total.Load())
}

// Rebuild rebuilds the index.
func (ix *Index) Rebuild(ctx context.Context) (Stats, error) {
	err := ix.update(ctx, create)
	if err != nil && !damaged(err) {
		return Stats{}, fmt.Errorf("rebuild search index: %w", err)
	}
	return ix.Update(ctx)
}

// work is what an update has to do.
type work struct {
	ids []string // in this order
	// marks are those of the conversations if all were looked at; otherwise they are
	// read one by one.
	marks   map[string]corpus.Marks
	all     bool // the index is complete afterwards
	changes corpus.Changes
}

func (ix *Index) updateOnce(ctx context.Context, ids []string) (stats Stats, err error) {
	w := work{ids: ids}
	if len(ids) == 0 {
		// Two at once would read the same: the second finds what is left.
		select {
		case ix.updating <- struct{}{}:
			defer func() { <-ix.updating }()
		case <-ctx.Done():
			return stats, ctx.Err()
		}
		if w, err = ix.plan(ctx); err != nil {
			return stats, err
		}
	}
	done, total := 0, len(w.ids)
	ix.total.Add(int64(total))
	defer func() { // both are zero when no update runs
		ix.total.Add(-int64(total))
		ix.done.Add(-int64(done))
	}()
	for done < total {
		n, err := ix.some(ctx, w.ids[done:], w, &stats)
		if err != nil {
			return stats, err
		}
		done += n
		ix.done.Add(int64(n))
	}
	if len(ids) > 0 {
		return stats, nil
	}
	return stats, ix.finish(ctx, w)
}

// plan finds out what has changed.
func (ix *Index) plan(ctx context.Context) (w work, err error) {
	if w.changes, err = ix.source.Changes(ctx); err != nil { // before the marks, which are then as new
		return w, err
	}
	complete, seen, again := false, make(map[string]uint64), []string(nil)
	err = ix.find(ctx, func(c *conn) error {
		return c.read(func() error {
			err := c.query("SELECT trimmed FROM state", func(s *sqlite3.Stmt) { complete = uint64(s.ColumnInt64(0)) == w.changes.Trimmed })
			if err != nil || !complete {
				return err
			}
			return errors.Join(
				c.query("SELECT id, version FROM seen", func(s *sqlite3.Stmt) { seen[s.ColumnText(0)] = uint64(s.ColumnInt64(1)) }),
				c.query("SELECT id FROM again", func(s *sqlite3.Stmt) { again = append(again, s.ColumnText(0)) }),
			)
		})
	})
	if err != nil {
		return w, err
	}
	if !complete {
		w.all = true
		if w.marks, err = ix.stale(ctx); err == nil {
			w.ids = newestFirst(w.marks)
		}
		return w, err
	}
	for id, version := range w.changes.Rows {
		if seen[id] != version && !slices.Contains(again, id) {
			w.ids = append(w.ids, id)
		}
	}
	slices.Sort(w.ids)
	w.ids = append(w.ids, again...)
	return w, nil
}

// newestFirst puts the conversations first that users most likely look for, so that they
// are found even while the first update runs.
func newestFirst(stale map[string]corpus.Marks) []string {
	ids := make([]string, 0, len(stale))
	for id := range stale {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		if c := strings.Compare(stale[b].Listed, stale[a].Listed); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return ids
}

// A transaction ends after transactionTime: another process may wait for it.
const transactionTime = 200 * time.Millisecond

// some updates the first conversations in one transaction, and returns how many.
func (ix *Index) some(ctx context.Context, ids []string, w work, stats *Stats) (n int, err error) {
	var done Stats
	err = ix.update(ctx, func(c *conn) error {
		return c.write(func() error {
			n, done = 0, Stats{}
			for began := time.Now(); n < len(ids) && (n == 0 || time.Since(began) < transactionTime); n++ {
				if err := ix.mark(ctx, c, ids[n], w, &done); err != nil {
					return fmt.Errorf("conversation %s: %w", ids[n], err)
				}
			}
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	stats.Conversations += done.Conversations
	stats.Removed += done.Removed
	stats.Messages += done.Messages
	stats.Damaged = append(stats.Damaged, done.Damaged...)
	return n, nil
}

// mark updates one conversation, and notes that its change was seen.
func (ix *Index) mark(ctx context.Context, c *conn, id string, w work, stats *Stats) error {
	m, known := w.marks[id]
	var err error
	if !known {
		m, err = ix.source.MarksOf(ctx, id)
	}
	whole := true
	switch {
	case err == nil:
		whole, err = ix.one(ctx, c, id, m, stats)
	case conversation.Damaged(err):
		stats.Damaged = append(stats.Damaged, id)
		whole, err = false, nil
	}
	if err == nil && !whole { // it may be repaired; until then each update reports it
		err = c.exec("INSERT OR REPLACE INTO again(id) VALUES(?)", id)
	} else if err == nil {
		err = c.exec("DELETE FROM again WHERE id = ?", id)
	}
	if version, ok := w.changes.Rows[id]; ok && err == nil {
		err = c.exec("INSERT OR REPLACE INTO seen(id, version) VALUES(?, ?)", id, version)
	}
	return err
}

// trimAt is how many changes are kept, so that few updates write to the store.
var trimAt = 200

// finish notes that the index is complete, and trims the changes that it has seen. An
// index in memory leaves them to the one that lasts.
func (ix *Index) finish(ctx context.Context, w work) error {
	if w.all {
		err := ix.update(ctx, func(c *conn) error {
			return c.write(func() error {
				if err := c.Exec("DELETE FROM state; DELETE FROM seen"); err != nil {
					return err
				}
				for id, version := range w.changes.Rows {
					if err := c.exec("INSERT INTO seen(id, version) VALUES(?, ?)", id, version); err != nil {
						return err
					}
				}
				return c.exec("INSERT INTO state(trimmed) VALUES(?)", w.changes.Trimmed)
			})
		})
		if err != nil {
			return err
		}
	}
	if len(w.changes.Rows) <= trimAt || !ix.lasting() {
		return nil
	}
	trimmed, err := ix.source.Trim(ctx, w.changes.Rows)
	if errors.Is(err, blob.ErrReadOnly) {
		return nil
	}
	if err != nil {
		return err
	}
	return ix.update(ctx, func(c *conn) error {
		return c.write(func() error {
			return errors.Join(c.exec("UPDATE state SET trimmed = ?", trimmed), c.exec("DELETE FROM seen"))
		})
	})
}

// lasting reports whether the index is in a file.
func (ix *Index) lasting() bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.path != ""
}

// stale compares the index with all conversations.
func (ix *Index) stale(ctx context.Context) (map[string]corpus.Marks, error) {
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
