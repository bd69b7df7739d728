package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// hot returns the statements of ordinary calls, by what they are for. Templates are as in
// the sources.
func hot(t *testing.T, tenant *Tenant) map[string]string {
	t.Helper()
	all := map[string]string{
		"read a row": sqlReadRow, "read rows": sqlReadRows, "read a blob": sqlReadBlob, "read blobs": sqlReadBlobs,
		"look at a blob": sqlLookBlob, "look at blobs": sqlLookBlobs, "lock rows": sqlLock,
		"name": sqlCommit, "named": sqlCommitted, "in generation": sqlInGeneration, "touch": sqlTouch, "all there": sqlAllThere,
		"store a blob": sqlStoreBlob, "store blobs": sqlStoreBlobs, "expect": sqlExpect, "absent": sqlAbsent,
		"remove": sqlRemove, "remove a range": sqlRemoveRange, "sweep": sqlSweep, "hold": sqlHold, "used": sqlUsed,
		"forget commits": `DELETE FROM @commits WHERE minute = (SELECT min(minute) FROM @commits) AND minute < $1`,
	}
	for kind, s := range sqlWriteRows {
		all[fmt.Sprint("write one, ", kind)], all[fmt.Sprint("write many, ", kind)] = s.one, s.many
	}
	for i, name := range []string{"scan", "scan backwards"} {
		all[name], all[name+", several"], all[name+", several keys"] = scanSQL[i][1][0], scansSQL[i][0], scansSQL[i][1]
		all[name+", with what belongs to it"] = besideSQL[i][1]
	}
	stored := &record{id: blob.Sum([]byte("a")), base: blob.Sum([]byte("b")), data: []byte("a")}
	for name, g := range map[string]*group{
		"set":  {t: tenant, reqs: []*request{{batch: set("a", "1")}}},
		"swap": {t: tenant, reqs: []*request{{batch: &kv.Batch{Expect: []kv.Expect{{Key: "a", Version: 1}}, Set: []kv.Set{{Key: "a"}}}}}},
		"save": {t: tenant, recs: []*record{stored}, reqs: []*request{{batch: &kv.Batch{
			Expect: []kv.Expect{{Key: "a", Version: 1}, {Key: "b"}}, Delete: []string{"c"}, Set: []kv.Set{{Key: "b"}, {Key: "d"}}, Refs: []blob.ID{stored.id},
		}}}},
	} {
		var held bool
		for _, q := range g.once(tenant.db.newAttempt(), 1, &held).QueuedQueries {
			all["once, "+name+", "+q.SQL[:min(20, len(q.SQL))]] = q.SQL
		}
	}
	return all
}

// TestHotStatementsUseIndexes asks for the plans of the statements of ordinary calls, for
// any arguments, on tables with many rows. None may read a table as a whole.
func TestHotStatementsUseIndexes(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), nil)
	tenant := newTenant(t, db)
	conn, err := db.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), db.sql(sql), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	const many = `generate_series(1, 20000) AS n`
	exec(`INSERT INTO @tenants SELECT 't' || n % 2000, 1 FROM ` + many + ` ON CONFLICT DO NOTHING`)
	exec(`INSERT INTO @generations SELECT 't' || n % 2000, 1 + n / 2000 FROM ` + many)
	exec(`INSERT INTO @rows SELECT 't' || n % 100, ('key ' || n)::bytea, n, 'value' FROM ` + many)
	exec(`INSERT INTO @blobs (tenant, id, base, size, generation, stored_at, data)
		SELECT 't' || n % 100, decode(lpad(n::text, 64, '0'), 'hex'), CASE WHEN n % 2 = 0 THEN decode(lpad((n + 100)::text, 64, '0'), 'hex') END, 5, 1, 1, 'value' FROM ` + many)
	exec(`INSERT INTO @commits SELECT n / 100, decode(lpad(n::text, 32, '0'), 'hex') FROM ` + many)
	exec(`ANALYZE @tenants; ANALYZE @generations; ANALYZE @rows; ANALYZE @blobs; ANALYZE @commits`)
	for name, template := range hot(t, tenant) {
		if plan := planOf(t, conn.Conn(), db.sql(template)); strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s reads a table as a whole:\n%s\n%s", name, template, plan)
		}
	}
}

// wholeTenant is a look into an index for all that a tenant has.
var wholeTenant = regexp.MustCompile(`(on rows|on blobs|rows_pkey|blobs_pkey)[^\n]*\n\s+(Index|Recheck) Cond: \(tenant = \$\d+\)\n`)

// TestPlansForNewTables is of a connection that plans while there is little: it keeps these
// plans until the server has counted the rows, which takes a minute or more. By then a
// tenant may have many.
func TestPlansForNewTables(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), nil)
	tenant := newTenant(t, db)
	conn, err := db.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for i := range 100 {
		b := blob.New(fmt.Append(nil, i))
		if err := tenant.Blobs().Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, tenant.Rows(), &kv.Batch{Set: []kv.Set{{Key: fmt.Sprint("key ", i)}}, Refs: []blob.ID{b.ID}})
	}
	for name, template := range hot(t, tenant) {
		kind, _, _ := strings.Cut(name, " ")
		if !slices.Contains([]string{"read", "look", "lock", "once,", "scan", "scan,", "write", "store"}, kind) {
			continue // of the general form, and of collection
		}
		if plan := planOf(t, conn.Conn(), db.sql(template)); wholeTenant.MatchString(plan + "\n") {
			t.Errorf("%s reads all rows of a tenant:\n%s\n%s", name, template, plan)
		}
	}
}

// TestStatementsArePlannedOnce shows that connections do not plan a statement for its
// arguments: planning costs more than running it.
func TestStatementsArePlannedOnce(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), nil)
	var mode string
	if err := db.pool.QueryRow(t.Context(), `SELECT current_setting('plan_cache_mode')`).Scan(&mode); err != nil || mode != "force_generic_plan" {
		t.Errorf("plans: %q, %v", mode, err)
	}
}

// planOf returns the plan of a statement for any arguments.
func planOf(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	described, err := conn.Prepare(t.Context(), sql, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL,", len(described.ParamOIDs)), ",")
	rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE `+pgx.Identifier{described.Name}.Sanitize()+`(`+nulls+`)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(lines, "\n")
}
