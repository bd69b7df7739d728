package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Count is a number of rows or blobs with their bytes.
type Count struct{ N, Bytes int64 }

// Stats counts what a tenant has.
type Stats struct {
	// Inside are the blobs in the database, Objects those in the bucket. Deltas are the
	// blobs in either that lean on another blob.
	Inside, Objects, Deltas Count
	// Rows are counted by the first two parts of their keys, which ":" separates.
	Rows []RowStats
}

// RowStats counts the rows whose keys begin alike.
type RowStats struct {
	// Key is one of them, with bytes that are not ASCII escaped.
	Key string
	Count
}

const (
	sqlBlobStats = `SELECT count(*) FILTER (WHERE object IS NULL), coalesce(sum(size) FILTER (WHERE object IS NULL), 0)::bigint,
		count(object), coalesce(sum(size) FILTER (WHERE object IS NOT NULL), 0)::bigint,
		count(base), coalesce(sum(size) FILTER (WHERE base IS NOT NULL), 0)::bigint FROM @blobs WHERE tenant = $1`
	sqlRowStats = `SELECT min(k), count(*), sum(n)::bigint FROM (
		SELECT encode(key, 'escape') AS k, length(key) + length(value) AS n FROM @rows WHERE tenant = $1) r
		GROUP BY split_part(k, ':', 1), split_part(k, ':', 2) ORDER BY 1`
)

// Stats reads all keys of the tenant.
func (t *Tenant) Stats(ctx context.Context) (s Stats, err error) {
	db := t.db
	err = db.read(ctx, func() error {
		return db.pool.QueryRow(ctx, db.sql(sqlBlobStats), t.name).Scan(&s.Inside.N, &s.Inside.Bytes, &s.Objects.N, &s.Objects.Bytes, &s.Deltas.N, &s.Deltas.Bytes)
	})
	if err != nil {
		return Stats{}, db.wrap(ctx, "count blobs", err)
	}
	err = db.read(ctx, func() error {
		rows, err := db.pool.Query(ctx, db.sql(sqlRowStats), t.name)
		if err != nil {
			return err
		}
		s.Rows, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r RowStats, err error) {
			return r, row.Scan(&r.Key, &r.N, &r.Bytes)
		})
		return err
	})
	if err != nil {
		return Stats{}, db.wrap(ctx, "count rows", err)
	}
	return s, nil
}
