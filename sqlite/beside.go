package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/kv"
)

// ScanBeside implements kv.Store with one statement.
func (r *Rows) ScanBeside(ctx context.Context, in kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	if in.Empty() {
		return nil, ctx.Err()
	}
	limit := opts.Limit
	if limit == 0 {
		limit = -1
	}
	args := []any{in.Start, limit, in.End}
	for _, b := range beside {
		args = append(args, b.Skip+1, b.Prefix, b.From, b.To)
	}
	sql := besideSQL(opts.Reverse, in.End != "", len(beside))
	var all []kv.Found
	err := r.db.readers.with(ctx, func(c *conn) error {
		all = nil
		return c.query(sql, func(s *sqlite3.Stmt) error {
			found := kv.Found{Key: s.ColumnText(0), Rows: make([]kv.Row, len(beside)), Errs: make([]error, len(beside))}
			for i := range beside {
				if at := 1 + 3*i; s.ColumnType(at) != sqlite3.NULL {
					found.Rows[i] = kv.Row{Key: s.ColumnText(at), Version: uint64(s.ColumnInt64(at + 1)), Value: s.ColumnBlob(at+2, nil)}
				}
			}
			all = append(all, found)
			return nil
		}, args...)
	})
	return all, r.db.readError(ctx, "scan rows", err)
}

// besideSQL returns the statement that reads a number of rows beside each key.
func besideSQL(reverse, bounded bool, beside int) string {
	order, where := "ASC", " AND ?3 = ''"
	if reverse {
		order = "DESC"
	}
	if bounded {
		where = " AND key < ?3"
	}
	var columns, joins strings.Builder
	for i := range beside {
		p := 4 + 4*i
		fmt.Fprintf(&columns, ", b%[1]d.key, b%[1]d.version, b%[1]d.value", i)
		fmt.Fprintf(&joins, ` LEFT JOIN rows b%[1]d ON b%[1]d.key = (SELECT key FROM rows
			WHERE key >= ?%[3]d || substr(k.key, ?%[2]d) || ?%[4]d AND key < ?%[3]d || substr(k.key, ?%[2]d) || ?%[5]d
			ORDER BY key DESC LIMIT 1)`, i, p, p+1, p+2, p+3)
	}
	return "SELECT k.key" + columns.String() + " FROM (SELECT key FROM rows WHERE key >= ?1" + where +
		" ORDER BY key " + order + " LIMIT ?2) k" + joins.String() + " ORDER BY k.key " + order
}
