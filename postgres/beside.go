package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/kv"
)

// besideSQL reads the keys of a range and the rows that belong to them, in any order: SQL
// promises none for a join.
var besideSQL = func() (sql [2][2]string) {
	for reverse, order := range []string{"ASC", "DESC"} {
		for bounded, where := range []string{"", " AND key < $9"} {
			sql[reverse][bounded] = `SELECT k.key, b.n, s.key, s.version, s.value
				FROM (SELECT key FROM @rows WHERE tenant = $1 AND key >= $2` + where + `
					ORDER BY tenant ` + order + `, key ` + order + ` LIMIT $3) k
				CROSS JOIN unnest($4::int[], $5::int[], $6::bytea[], $7::bytea[], $8::bytea[]) AS b (n, skip, prefix, first, behind)
				LEFT JOIN LATERAL (SELECT key, version, value FROM @rows
					WHERE tenant = $1 AND key >= b.prefix || substring(k.key FROM b.skip + 1) || b.first
						AND key < b.prefix || substring(k.key FROM b.skip + 1) || b.behind
					ORDER BY tenant DESC, key DESC LIMIT 1) s ON true`
		}
	}
	return sql
}()

// ScanBeside implements kv.Store with one round trip.
func (r *Rows) ScanBeside(ctx context.Context, in kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	if err := ctx.Err(); err != nil || in.Empty() {
		return nil, err
	}
	if len(beside) == 0 {
		return kv.EachBeside(ctx, r, in, opts)
	}
	var limit *int
	if opts.Limit > 0 {
		limit = &opts.Limit
	}
	numbers, skips := make([]int32, len(beside)), make([]int32, len(beside))
	prefixes, first, behind := make([][]byte, len(beside)), make([][]byte, len(beside)), make([][]byte, len(beside))
	for i, b := range beside {
		numbers[i], skips[i] = int32(i), int32(b.Skip)
		prefixes[i], first[i], behind[i] = []byte(b.Prefix), []byte(b.From), []byte(b.To)
	}
	args := []any{r.t.name, []byte(in.Start), limit, numbers, skips, prefixes, first, behind}
	if in.End != "" {
		args = append(args, []byte(in.End))
	}
	db := r.t.db
	var all []kv.Found
	err := db.read(ctx, func() error {
		found, err := db.pool.Query(ctx, db.sql(besideSQL[index(opts.Reverse)][index(in.End != "")]), args...)
		if err != nil {
			return err
		}
		all, err = collectBeside(found, len(beside))
		return err
	})
	slices.SortFunc(all, func(a, b kv.Found) int {
		if opts.Reverse {
			a, b = b, a
		}
		return strings.Compare(a.Key, b.Key)
	})
	return all, db.wrap(ctx, "scan rows", err)
}

func collectBeside(found pgx.Rows, beside int) ([]kv.Found, error) {
	var all []kv.Found
	at := make(map[string]int)
	var of, key, value []byte
	var n int32
	var version *int64
	_, err := pgx.ForEachRow(found, []any{&of, &n, &key, &version, &value}, func() error {
		i, ok := at[string(of)]
		if !ok {
			i, at[string(of)] = len(all), len(all)
			all = append(all, kv.Found{Key: string(of), Rows: make([]kv.Row, beside), Errs: make([]error, beside)})
		}
		if version != nil {
			all[i].Rows[n] = kv.Row{Key: string(key), Version: uint64(*version), Value: value}
			value = nil
		}
		return nil
	})
	return all, err
}
