package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/kv"
)

// scanKind is what scans that share a statement have in common.
type scanKind struct {
	reverse, keysOnly, bounded bool
	limit                      int
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

// scansSQL reads several bounded ranges: a statement costs the server far more than one
// more look into an index.
var scansSQL = func() (sql [2][2]string) {
	for reverse, order := range []string{"ASC", "DESC"} {
		for keysOnly, value := range []string{"value", "NULL::bytea AS value"} {
			sql[reverse][keysOnly] = `SELECT r.n, s.key, s.version, s.value
				FROM unnest($3::int[], $4::bytea[], $5::bytea[]) AS r (n, first, behind),
				LATERAL (SELECT key, version, ` + value + ` FROM @rows WHERE tenant = $1 AND key >= r.first AND key < r.behind
					ORDER BY tenant ` + order + `, key ` + order + ` LIMIT $2) s`
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

// sql returns the statement for one range.
func (k scanKind) sql() string { return scanSQL[index(k.reverse)][index(k.bounded)][index(k.keysOnly)] }

func (k scanKind) args(tenant string, in kv.Range) []any {
	args := []any{tenant, []byte(in.Start), k.limit}
	if k.bounded {
		args = append(args, []byte(in.End))
	}
	return args
}

// queueScans adds the query for scans of one kind.
func (f *flight) queueScans(b *pgx.Batch, kind scanKind, some []*question) {
	db := f.t.db
	if len(some) == 1 || !kind.bounded {
		for _, q := range some {
			b.Queue(db.sql(kind.sql()), kind.args(f.t.name, q.in)...).Query(func(found pgx.Rows) (err error) {
				q.rows, err = collectRows(found)
				return err
			})
		}
		return
	}
	numbers, first, behind := make([]int32, len(some)), make([][]byte, len(some)), make([][]byte, len(some))
	for i, q := range some {
		numbers[i], first[i], behind[i] = int32(i), []byte(q.in.Start), []byte(q.in.End)
	}
	sql := scansSQL[index(kind.reverse)][index(kind.keysOnly)]
	b.Queue(db.sql(sql), f.t.name, kind.limit, numbers, first, behind).Query(func(found pgx.Rows) error {
		var n int32
		var key, value []byte
		var version int64
		_, err := pgx.ForEachRow(found, []any{&n, &key, &version, &value}, func() error {
			some[n].rows = append(some[n].rows, kv.Row{Key: string(key), Version: uint64(version), Value: value})
			value = nil
			return nil
		})
		for _, q := range some {
			kind.sort(q.rows)
		}
		return err
	})
}

// sort puts rows in the order of a scan. SQL promises none for a join.
func (k scanKind) sort(rows []kv.Row) {
	order := func(a, b kv.Row) int { return strings.Compare(a.Key, b.Key) }
	if k.reverse {
		order = func(a, b kv.Row) int { return strings.Compare(b.Key, a.Key) }
	}
	if !slices.IsSortedFunc(rows, order) {
		slices.SortFunc(rows, order)
	}
}
