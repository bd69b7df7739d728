package pgsearch

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Dump returns everything that the index holds, sorted, the same for all tenants.
func (ix *Index) Dump(t testing.TB) []string {
	t.Helper()
	rows, err := ix.db.pool.Query(t.Context(), ix.db.sql(`SELECT concat_ws(' ', encode(c.id, 'escape'), encode(s.section, 'hex'), encode(s.digest, 'hex'), d.place, encode(d.digest, 'hex'),
		d.turn, d.message, d.role, d.kind, d.tool, d.time, d.subagent, d.save, d.weight, d.exact, replace(d.words::text, $2, ''), md5(d.body), d.path)
		FROM @doc d JOIN @section s ON s.tenant = d.tenant AND s.conv = d.conv AND s.section = d.section
		JOIN @conv c ON c.tenant = d.tenant AND c.conv = d.conv WHERE d.tenant = $1`), ix.tenant, ix.scope)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// Count returns how many rows a table has, of all tenants.
func (db *DB) Count(t testing.TB, table string) int {
	t.Helper()
	var n int
	if err := db.pool.QueryRow(t.Context(), db.sql("SELECT count(*) FROM @"+table)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
