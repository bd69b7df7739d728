package pgsearch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/internal/corpus"
)

// Update implements search.Searcher.
func (ix *Index) Update(ctx context.Context, conversations ...string) (search.Stats, error) {
	var stats search.Stats
	stale, err := ix.stale(ctx, conversations)
	if err != nil {
		return stats, fmt.Errorf("update search index: %w", err)
	}
	done := int64(0)
	ix.total.Add(int64(len(stale)))
	defer func() {
		ix.total.Add(-int64(len(stale)))
		ix.done.Add(-done)
	}()
	for _, id := range slices.Sorted(maps.Keys(stale)) {
		if err := ix.updateOne(ctx, id, stale[id], &stats); err != nil {
			return stats, fmt.Errorf("update search index: conversation %s: %w", id, err)
		}
		done++
		ix.done.Add(1)
	}
	return stats, nil
}

// Rebuild implements search.Searcher. Concurrent searches find what is already
// indexed.
func (ix *Index) Rebuild(ctx context.Context) (search.Stats, error) {
	if err := ix.check(ctx); err != nil {
		return search.Stats{}, fmt.Errorf("rebuild search index: %w", err)
	}
	if err := ix.forget(ctx); err != nil {
		return search.Stats{}, fmt.Errorf("rebuild search index: %w", err)
	}
	return ix.Update(ctx)
}

// forgetAtOnce is how many conversations are removed in one transaction.
const forgetAtOnce = 500

// forget removes everything of the tenant. It locks the rows of conversations before
// it removes their content, as updates do.
func (ix *Index) forget(ctx context.Context) error {
	for {
		left := 0
		err := pgx.BeginFunc(ctx, ix.db.pool, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, ix.db.sql("SELECT conv FROM @conv WHERE tenant = $1 ORDER BY conv LIMIT $2 FOR UPDATE"), ix.tenant, forgetAtOnce)
			if err != nil {
				return err
			}
			convs, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
			if err != nil {
				return err
			}
			left = len(convs)
			for _, table := range []string{"doc", "section", "conv"} {
				if _, err := tx.Exec(ctx, ix.db.sql("DELETE FROM @"+table+" WHERE tenant = $1 AND conv = ANY($2)"), ix.tenant, convs); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || left < forgetAtOnce {
			return err
		}
	}
}

// stale returns the named conversations with their marks or, without names, those
// that changed.
func (ix *Index) stale(ctx context.Context, ids []string) (map[string]corpus.Marks, error) {
	if err := ix.check(ctx); err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		stale := make(map[string]corpus.Marks)
		for _, id := range ids {
			m, err := ix.source.MarksOf(ctx, id)
			if err != nil && !conversation.Damaged(err) {
				return nil, err
			}
			stale[id] = m // the update reports the damage
		}
		return stale, nil
	}
	rows, err := ix.db.pool.Query(ctx, ix.db.sql("SELECT id, listed, listed_version, record_version, tips FROM @conv WHERE tenant = $1"), ix.tenant)
	if err != nil {
		return nil, err
	}
	known, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (corpus.Known, error) {
		var k corpus.Known
		var id, listed []byte
		var listedVersion, recordVersion int64
		err := row.Scan(&id, &listed, &listedVersion, &recordVersion, &k.Tips)
		k.ID, k.Marks = string(id), corpus.Marks{Listed: string(listed), ListedVersion: uint64(listedVersion), RecordVersion: uint64(recordVersion)}
		return k, err
	})
	if err != nil {
		return nil, err
	}
	return ix.source.Stale(ctx, known)
}

// updateTries limits attempts for a conversation that others keep removing.
const updateTries = 10

// updateOne brings one conversation up to date in its own transaction.
func (ix *Index) updateOne(ctx context.Context, id string, marks corpus.Marks, stats *search.Stats) error {
	select {
	case ix.db.writers <- struct{}{}:
		defer func() { <-ix.db.writers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for try := 0; ; try++ {
		done := *stats // counts without a rolled-back transaction
		done.Damaged = slices.Clone(stats.Damaged)
		err := pgx.BeginFunc(ctx, ix.db.pool, func(tx pgx.Tx) error {
			w := &writer{Index: ix, tx: tx, conv: key(id), stats: &done}
			return w.update(ctx, id, marks)
		})
		if err == nil {
			*stats = done
			return nil
		}
		if try == updateTries || !errors.Is(err, errVanished) && !hasCode(err, "23505", "40001", "40P01") {
			return err
		}
	}
}

// errVanished means that another node removed the row to be locked.
var errVanished = fault.New(fault.Stale, "the conversation was removed from the index meanwhile")

// key returns a fixed-length key for a text of any length.
func key(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// writer updates one conversation.
type writer struct {
	*Index
	tx    pgx.Tx
	conv  []byte
	batch pgx.Batch
	bytes int // of the batch
	stats *search.Stats
}

// update locks the conversation's row before it reads the conversation, so that the
// later of two nodes sees the newer state.
func (w *writer) update(ctx context.Context, id string, marks corpus.Marks) error {
	fresh, err := w.hold(ctx, id)
	if err != nil {
		return err
	}
	info, err := w.source.Conversations.Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		if !fresh {
			w.stats.Removed++
		}
		return w.remove(ctx)
	}
	if conversation.Damaged(err) {
		w.stats.Damaged = append(w.stats.Damaged, id)
		if fresh {
			return w.remove(ctx)
		}
		return nil // the indexed part can still be found
	}
	if err != nil {
		return err
	}
	w.stats.Conversations++
	want, tips, err := w.source.Sections(ctx, info)
	if conversation.Damaged(err) {
		w.stats.Damaged = append(w.stats.Damaged, id)
		err = nil
	}
	if err != nil {
		return err
	}
	left, err := json.Marshal(append([]uint64{}, tips...))
	if err != nil {
		return err
	}
	w.queue(`UPDATE @conv SET title = $3, updated = $4, tips = $5, listed = $6, listed_version = $7, record_version = $8 WHERE tenant = $1 AND conv = $2`,
		w.tenant, w.conv, []byte(info.Title), info.Updated.UnixMilli(), string(left), []byte(marks.Listed), int64(marks.ListedVersion), int64(marks.RecordVersion))
	if err := w.sync(ctx, want); err != nil {
		return err
	}
	return w.flush(ctx)
}

// hold creates the conversation's row if missing, and locks it.
func (w *writer) hold(ctx context.Context, id string) (fresh bool, err error) {
	tag, err := w.tx.Exec(ctx, w.db.sql(`INSERT INTO @conv (tenant, conv, id, title, updated, tips, listed, listed_version, record_version)
		VALUES ($1, $2, $3, '', 0, '[]', '', 0, 0) ON CONFLICT DO NOTHING`), w.tenant, w.conv, []byte(id))
	if err != nil {
		return false, err
	}
	var found int
	err = w.tx.QueryRow(ctx, w.db.sql(`SELECT 1 FROM @conv WHERE tenant = $1 AND conv = $2 FOR UPDATE`), w.tenant, w.conv).Scan(&found)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, errVanished
	}
	return tag.RowsAffected() > 0, err
}

func (w *writer) remove(ctx context.Context) error {
	for _, table := range []string{"doc", "section", "conv"} {
		w.queue("DELETE FROM @"+table+" WHERE tenant = $1 AND conv = $2", w.tenant, w.conv)
	}
	return w.flush(ctx)
}

// Statements are sent in batches, limited in number and size.
const (
	batchStatements = 256
	batchBytes      = 4 << 20
)

func (w *writer) queue(sql string, args ...any) { w.batch.Queue(w.db.sql(sql), args...) }

func (w *writer) flush(ctx context.Context) error {
	if w.batch.Len() == 0 {
		return nil
	}
	batch := w.batch
	w.batch, w.bytes = pgx.Batch{}, 0
	return w.tx.SendBatch(ctx, &batch).Close()
}

// flushFull sends a batch that is large enough.
func (w *writer) flushFull(ctx context.Context) error {
	if w.batch.Len() < batchStatements && w.bytes < batchBytes {
		return nil
	}
	return w.flush(ctx)
}
