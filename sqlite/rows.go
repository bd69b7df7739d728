package sqlite

import (
	"context"
	"iter"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/kv"
)

// Rows is the kv.Store of a DB. A scan sees each page of rows as it was when
// that page was read.
type Rows struct{ db *DB }

// Rows returns the store of rows.
func (db *DB) Rows() *Rows { return &Rows{db: db} }

// Get implements kv.Store.
func (r *Rows) Get(ctx context.Context, key string) (kv.Row, error) {
	if err := kv.CheckKey(key); err != nil {
		return kv.Row{}, err
	}
	row, found := kv.Row{Key: key}, false
	err := r.db.readers.with(ctx, func(c *conn) error {
		s, err := c.stmt(`SELECT version, value FROM rows WHERE key = ?1`)
		if err != nil {
			return err
		}
		defer s.Reset()
		if err := s.BindText(1, key); err != nil {
			return err
		}
		if s.Step() {
			found = true
			row.Version = uint64(s.ColumnInt64(0))
			row.Value = s.ColumnBlob(1, nil)
		}
		return s.Err()
	})
	if err != nil {
		return kv.Row{}, r.db.readError(ctx, "read row", err)
	}
	if !found {
		return kv.Row{}, kv.NotFound(key)
	}
	return row, nil
}

// Scan implements kv.Store.
func (r *Rows) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return kv.Paged(in, opts, func(in kv.Range, limit int) ([]kv.Row, error) {
		return r.page(ctx, in, opts, limit)
	})
}

var scanSQL = func() (sql [2][2][2]string) {
	for reverse, order := range []string{"ASC", "DESC"} {
		for bounded, where := range []string{"", " AND key < ?3"} {
			for keysOnly, columns := range []string{"key, version, value", "key, version, NULL"} {
				sql[reverse][bounded][keysOnly] = "SELECT " + columns + " FROM rows WHERE key >= ?1" + where +
					" ORDER BY key " + order + " LIMIT ?2"
			}
		}
	}
	return sql
}()

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *Rows) page(ctx context.Context, in kv.Range, opts kv.ScanOptions, limit int) ([]kv.Row, error) {
	args := []any{in.Start, limit}
	if in.End != "" {
		args = append(args, in.End)
	}
	sql := scanSQL[index(opts.Reverse)][index(in.End != "")][index(opts.KeysOnly)]
	var rows []kv.Row
	err := r.db.readers.with(ctx, func(c *conn) error {
		rows = rows[:0]
		return c.query(sql, func(s *sqlite3.Stmt) error {
			row := kv.Row{Key: s.ColumnText(0), Version: uint64(s.ColumnInt64(1))}
			if !opts.KeysOnly {
				row.Value = s.ColumnBlob(2, nil)
			}
			rows = append(rows, row)
			return nil
		}, args...)
	})
	return rows, r.db.readError(ctx, "scan rows", err)
}

// Commit implements kv.Store.
func (r *Rows) Commit(ctx context.Context, b *kv.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	return r.db.writer.do(&request{ctx: ctx, batch: b.Clone()})
}

// Watch implements kv.Store. Commits of this process wake watchers at once, commits of
// others within 50 ms.
func (r *Rows) Watch(ctx context.Context, in kv.Range) <-chan struct{} {
	return r.db.watch.add(ctx, in)
}
