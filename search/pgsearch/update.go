package pgsearch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search"
)

// Update implements search.Searcher. It waits for another process that updates the same
// index. With InRequest it does only a little.
func (ix *Index) Update(ctx context.Context, conversations ...string) (search.Stats, error) {
	if ix.InRequest && len(conversations) == 0 {
		return ix.updateSome(ctx)
	}
	var stats search.Stats
	l, err := ix.wait(ctx)
	if err == nil {
		defer l.release(ctx)
		if len(conversations) > 0 {
			err = l.named(ctx, conversations, &stats)
		} else {
			_, err = l.all(ctx, time.Time{}, &stats)
		}
	}
	if err != nil {
		return stats, fmt.Errorf("update search index: %w", err)
	}
	return stats, nil
}

// Work updates the index for about as long as budget says, and reports whether there is
// more to do. It keeps an index up to date in the background and can be called on any
// node at any time. It returns at once while another process does the same, and continues
// where a killed one stopped.
func (ix *Index) Work(ctx context.Context, budget time.Duration) (stats search.Stats, more bool, err error) {
	l, err := ix.take(ctx)
	if errors.Is(err, errLost) {
		return stats, false, nil
	}
	if err == nil {
		defer l.release(ctx)
		more, err = l.all(ctx, time.Now().Add(budget), &stats)
	}
	if errors.Is(err, errLost) {
		return stats, false, nil
	}
	if err != nil {
		return stats, more, fmt.Errorf("update search index: %w", err)
	}
	return stats, more, nil
}

// A search updates an index in a request only if few conversations changed, and does not
// wait longer than requestTime for another process that does.
const (
	requestChanges = 100
	requestTime    = 2 * time.Second
)

// updateSome is Update for a request. It leaves the rest to Work.
func (ix *Index) updateSome(ctx context.Context) (search.Stats, error) {
	var stats search.Stats
	for end := time.Now().Add(requestTime); ; {
		if err := ix.check(ctx); err != nil {
			return stats, fmt.Errorf("update search index: %w", err)
		}
		s, ok, err := ix.load(ctx, ix.db.pool)
		if err != nil {
			return stats, fmt.Errorf("update search index: %w", err)
		}
		waiting, err := ix.changes(ctx, "", requestChanges+1)
		if err != nil {
			return stats, fmt.Errorf("update search index: %w", err)
		}
		if ok && !s.complete || len(waiting) > requestChanges || len(waiting) == 0 {
			return stats, nil
		}
		done, more, err := ix.Work(ctx, requestTime)
		stats.Conversations, stats.Removed, stats.Messages = stats.Conversations+done.Conversations, stats.Removed+done.Removed, stats.Messages+done.Messages
		stats.Damaged = append(stats.Damaged, done.Damaged...)
		if err != nil || !more && done.Conversations+done.Removed > 0 || time.Now().After(end) {
			return stats, err
		}
		select {
		case <-time.After(leaseLooks):
		case <-ctx.Done():
			return stats, ctx.Err()
		}
	}
}

// Rebuild implements search.Searcher. Concurrent searches find what is already
// indexed.
func (ix *Index) Rebuild(ctx context.Context) (search.Stats, error) {
	var stats search.Stats
	l, err := ix.wait(ctx)
	if err == nil {
		defer l.release(ctx)
		if err = l.forget(ctx); err == nil {
			_, err = l.all(ctx, time.Time{}, &stats)
		}
	}
	if err != nil {
		return stats, fmt.Errorf("rebuild search index: %w", err)
	}
	return stats, nil
}

// forgetAtOnce is how many rows one statement removes.
const forgetAtOnce = 5000

// forget removes everything of the tenant. The rows that searches use go last.
func (l *lease) forget(ctx context.Context) error {
	l.complete, l.place = false, ""
	err := l.change(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, l.db.sql("DELETE FROM @segment WHERE tenant = $1"), l.tenant); err != nil {
			return err
		}
		return l.note(ctx, tx)
	})
	for _, t := range []struct{ name, key string }{{"run", "num"}, {"conv", "conv"}, {"block", "seg, first, block"}} {
		for gone := int64(forgetAtOnce); err == nil && gone == forgetAtOnce; {
			err = l.change(ctx, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, l.db.sql(`DELETE FROM @`+t.name+` WHERE tenant = $1 AND (`+t.key+`) IN (
					SELECT `+t.key+` FROM @`+t.name+` WHERE tenant = $1 LIMIT $2)`), l.tenant, forgetAtOnce)
				gone = tag.RowsAffected()
				return err
			})
		}
	}
	return err
}

// pending is a conversation to look at, with the version of the row that marks it as
// changed.
type pending struct {
	id      string
	version uint64 // 0 if there is no such row
}

// changes returns the next conversations that changed, in the order of their rows.
func (ix *Index) changes(ctx context.Context, after string, limit int) ([]pending, error) {
	in := keyspace.AllChanged()
	if after != "" {
		in.Start = keyspace.Changed(after) + "\x00"
	}
	var out []pending
	for row, err := range ix.rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true, Limit: limit}) {
		if err != nil {
			return nil, fmt.Errorf("list changes: %w", err)
		}
		out = append(out, pending{keyspace.Last(row.Key), row.Version})
	}
	return out, nil
}

// version returns the version of the row that marks a conversation as changed, or 0.
func (ix *Index) version(ctx context.Context, id string) (version uint64, err error) {
	k := keyspace.Changed(id)
	for row, err := range ix.rows.Scan(ctx, kv.Range{Start: k, End: k + "\x00"}, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return 0, err
		}
		version = row.Version
	}
	return version, nil
}

// all looks at what changed or, in an index that is not complete, at all conversations,
// the latest first, until a time if that is set.
func (l *lease) all(ctx context.Context, until time.Time, stats *search.Stats) (more bool, err error) {
	if l.mode == Off {
		return false, l.off(ctx)
	}
	defer func() { l.done.Store(0); l.total.Store(0) }()
	late := func() bool { return !until.IsZero() && time.Now().After(until) }
	var failed error
	for !l.complete {
		if late() {
			return true, failed
		}
		n, err := l.walk(ctx, stats)
		if err != nil && n == 0 {
			return true, err
		}
		failed = errors.Join(failed, err)
	}
	for after := ""; ; {
		if late() {
			return true, failed
		}
		batch, err := l.changes(ctx, after, batchConversations)
		if err != nil || len(batch) == 0 {
			return false, errors.Join(failed, err, l.tidy(ctx))
		}
		after = batch[len(batch)-1].id
		did, err := l.index(ctx, batch, stats)
		if err != nil && !did {
			return true, errors.Join(failed, err)
		}
		failed = errors.Join(failed, err)
	}
}

// walk looks at the next conversations in the order by time, and returns how many.
func (l *lease) walk(ctx context.Context, stats *search.Stats) (int, error) {
	in := keyspace.ByTimes()
	if l.place != "" {
		in.End = l.place
	}
	var batch []pending
	place := ""
	for row, err := range l.rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true, Reverse: true, Limit: batchConversations}) {
		if err != nil {
			return 0, fmt.Errorf("list conversations: %w", err)
		}
		place = row.Key
		batch = append(batch, pending{id: keyspace.Last(row.Key)})
	}
	for i := range batch {
		var err error
		if batch[i].version, err = l.version(ctx, batch[i].id); err != nil {
			return 0, err
		}
	}
	// The place is written with the conversations.
	before, was := l.place, l.complete
	l.place, l.complete = place, len(batch) < batchConversations
	if l.complete {
		l.place = ""
	}
	did, err := l.index(ctx, batch, stats)
	if !did {
		l.place, l.complete = before, was
		return 0, err
	}
	return max(1, len(batch)), err
}

// named updates some conversations.
func (l *lease) named(ctx context.Context, ids []string, stats *search.Stats) error {
	if l.mode == Off {
		return nil
	}
	batch := make([]pending, len(ids))
	for i, id := range ids {
		version, err := l.version(ctx, id)
		if err != nil {
			return err
		}
		batch[i] = pending{id, version}
	}
	_, err := l.index(ctx, batch, stats)
	return errors.Join(err, l.tidy(ctx))
}

// off removes the index and the rows that nothing waits for.
func (l *lease) off(ctx context.Context) error {
	if !l.complete {
		if err := l.forget(ctx); err != nil {
			return err
		}
		l.complete = true // there is nothing to do
		if err := l.change(ctx, func(tx pgx.Tx) error { return l.note(ctx, tx) }); err != nil {
			return err
		}
	}
	for after := ""; ; {
		batch, err := l.changes(ctx, after, batchConversations)
		if err != nil || len(batch) == 0 {
			return err
		}
		after = batch[len(batch)-1].id
		if err := l.source.Seen(ctx, versionsOf(batch)); err != nil {
			return err
		}
	}
}

func versionsOf(batch []pending) map[string]uint64 {
	seen := make(map[string]uint64, len(batch))
	for _, p := range batch {
		if p.version != 0 {
			seen[p.id] = p.version
		}
	}
	return seen
}

// key returns a fixed-length key for a text of any length.
func key(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
