package postgres

import (
	"context"
	"iter"

	"github.com/stet-dev/stet/kv"
)

// Rows is the kv.Store of a Tenant. A scan sees each page of rows as it was when
// that page was read.
type Rows struct{ t *Tenant }

var _ kv.Store = (*Rows)(nil)

// Rows returns the store of rows.
func (t *Tenant) Rows() *Rows { return &Rows{t: t} }

// Get implements kv.Store.
func (r *Rows) Get(ctx context.Context, key string) (kv.Row, error) {
	if err := kv.CheckKey(key); err != nil {
		return kv.Row{}, err
	}
	if err := ctx.Err(); err != nil {
		return kv.Row{}, err
	}
	q := &question{key: key}
	if err := r.t.ask(ctx, q); err != nil {
		return kv.Row{}, r.t.db.wrap(ctx, "read row", err)
	}
	if len(q.rows) == 0 {
		return kv.Row{}, kv.NotFound(key)
	}
	return q.rows[0], nil
}

// Scan implements kv.Store.
func (r *Rows) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return kv.Paged(in, opts, func(in kv.Range, limit int) ([]kv.Row, error) {
		return r.page(ctx, in, opts, limit)
	})
}

var scanSQL = func() (sql [2][2][2]string) {
	for reverse, order := range []string{"ASC", "DESC"} {
		for bounded, where := range []string{"", " AND key < $4"} {
			for keysOnly, columns := range []string{"key, version, value", "key, version, NULL::bytea"} {
				sql[reverse][bounded][keysOnly] = "SELECT " + columns + " FROM @rows WHERE tenant = $1 AND key >= $2" + where +
					" ORDER BY tenant " + order + ", key " + order + " LIMIT $3"
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
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	args := []any{r.t.name, []byte(in.Start), limit}
	if in.End != "" {
		args = append(args, []byte(in.End))
	}
	sql := scanSQL[index(opts.Reverse)][index(in.End != "")][index(opts.KeysOnly)]
	db := r.t.db
	if limit <= maxShared {
		q := &question{sql: sql, args: args}
		err := r.t.ask(ctx, q)
		return q.rows, db.wrap(ctx, "scan rows", err)
	}
	var page []kv.Row
	err := db.read(ctx, func() error {
		rows, err := db.pool.Query(ctx, db.sql(sql), args...)
		if err != nil {
			return err
		}
		page, err = collectRows(rows)
		return err
	})
	return page, db.wrap(ctx, "scan rows", err)
}

// Commit implements kv.Store.
func (r *Rows) Commit(ctx context.Context, b *kv.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	return r.t.do(&request{ctx: ctx, batch: b.Clone()})
}

// Watch implements kv.Store.
func (r *Rows) Watch(ctx context.Context, in kv.Range) <-chan struct{} {
	return r.t.db.watch.add(ctx, r.t.name, in)
}
