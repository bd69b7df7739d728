package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

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
	row, db := kv.Row{Key: key}, r.t.db
	var version int64
	err := db.read(ctx, func() error {
		return db.pool.QueryRow(ctx, db.sql(`SELECT version, value FROM @rows WHERE tenant = $1 AND key = $2`),
			r.t.name, []byte(key)).Scan(&version, &row.Value)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return kv.Row{}, kv.NotFound(key)
	}
	if err != nil {
		return kv.Row{}, db.wrap(ctx, "read row", err)
	}
	row.Version = uint64(version)
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
	db := r.t.db
	sql := db.sql(scanSQL[index(opts.Reverse)][index(in.End != "")][index(opts.KeysOnly)])
	var page []kv.Row
	err := db.read(ctx, func() error {
		page = nil
		rows, err := db.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		var key, value []byte
		var version int64
		_, err = pgx.ForEachRow(rows, []any{&key, &version, &value}, func() error {
			page = append(page, kv.Row{Key: string(key), Version: uint64(version), Value: value})
			value = nil
			return nil
		})
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
