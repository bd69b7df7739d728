package postgres

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// once writes most transactions with one statement, or three with conditions and
// deletions, where the general pipeline takes a dozen: they share one check of the
// conditions, and each statement costs the server as much as the row that it writes. It
// rejects what it does not cover (ranges, fences, objects, blobs of an older generation,
// statements of other packages), and the general pipeline runs instead.
type once struct {
	sql  strings.Builder
	args []any
}

// arg adds an argument and returns its placeholder. The same kinds of changes give the
// same text, so that the statement is prepared once.
func (o *once) arg(v any) string {
	o.args = append(o.args, v)
	return "$" + strconv.Itoa(len(o.args))
}

func (o *once) add(parts ...string) {
	for _, p := range parts {
		o.sql.WriteString(p)
	}
}

// What conditions expects of a row besides a version.
const (
	wantAny    = 0  // it is locked, because it will be written
	wantAbsent = -1 // it must not exist
	wantThere  = -2 // it must exist
)

// maxOnce limits the rows whose conditions one statement checks: each row that is written is
// compared with all that must be absent.
const maxOnce = 64

// sqlLock locks rows before the statement that checks them, which then sees what was
// committed while this one waited.
//
// Each key is looked up by itself; see eachRow. Keys are in order, and so are the locks.
const sqlLock = `SELECT 1 FROM unnest($2::bytea[]) AS n (key) CROSS JOIN LATERAL (
	SELECT 1 FROM @rows WHERE tenant = $1 AND key = n.key FOR UPDATE) r`

// conditions returns the rows to be checked, in the order of keys, what is expected of
// each, and how many must be found as expected. It returns false if one statement cannot
// check them.
func (c *change) conditions() (keys [][]byte, wants []int64, found int, ok bool) {
	if c.doubted || c.fenced || len(c.ranges) > 0 {
		return nil, nil, 0, false
	}
	want := make(map[string]int64, len(c.expect)+len(c.rows))
	for _, r := range c.rows {
		switch r.kind {
		case insertRow:
			want[r.key] = wantAbsent
		case fenceRow:
			want[r.key] = wantThere
			found++
		}
	}
	for _, e := range c.expect {
		want[e.Key] = int64(e.Version)
		found++
	}
	if len(want) == 0 {
		return nil, nil, 0, true
	}
	if found > 0 && len(c.rows)+len(c.expect) <= maxLocked {
		for _, r := range c.rows {
			if _, known := want[r.key]; !known {
				want[r.key] = wantAny
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		keys, wants = append(keys, []byte(key)), append(wants, want[key])
	}
	return keys, wants, found, len(want) <= maxOnce
}

// once returns the transaction in few statements, or nil if it must be the general one.
func (g *group) once(a attempt, generation int64, held *bool) *pgx.Batch {
	c := g.change()
	keys, wants, found, ok := c.conditions()
	if !ok || g.hasObjects() || len(g.beside()) > 0 {
		return nil
	}
	o, b, name := &once{args: []any{a.minute, a.id, g.t.name}}, &pgx.Batch{}, g.t.name
	carries := len(g.recs)+len(c.refs) > 0
	if !carries && len(c.rows) == 0 && len(keys) == 0 {
		return nil // nothing but its name
	}
	o.add(`WITH good AS (SELECT 1 AS one WHERE true`)
	genArg := ""
	if carries {
		genArg = o.arg(generation)
		o.add(` AND (SELECT generation FROM @generations WHERE tenant = $3 ORDER BY generation DESC LIMIT 1 FOR SHARE) = `, genArg, `::bigint`)
	}
	if len(c.refs) > 0 {
		// One of an older generation must be moved to this one, which is left to the
		// general pipeline.
		o.add(` AND (SELECT count(*) FROM unnest(`, o.arg(idBytes(c.refs)), `::bytea[]) AS n (id) CROSS JOIN LATERAL (
			SELECT 1 FROM @blobs WHERE tenant = $3 AND id = n.id AND generation >= `, genArg, `::bigint LIMIT 1) b) = `, o.arg(len(c.refs)), `::bigint`)
	}
	if len(keys) > 0 {
		o.add(` AND (SELECT count(*) FILTER (WHERE want IN (-2, version)) - 1000 * count(*) FILTER (WHERE want = -1)
			FROM unnest(`, o.arg(keys), `::bytea[], `, o.arg(wants), `::bigint[]) AS n (key, want) CROSS JOIN LATERAL (
			SELECT version FROM @rows WHERE tenant = $3 AND key = n.key FOR UPDATE) r) = `, o.arg(found), `::bigint`)
	}
	o.add(`)`)
	o.blobs(g, genArg)
	o.rows(c)
	o.add(` INSERT INTO @commits (minute, id) SELECT $1::bigint, $2::bytea FROM good`)
	if len(keys) > 0 && found > 0 {
		b.Queue(g.t.db.sql(sqlLock), name, keys)
	}
	b.Queue(g.t.db.sql(o.sql.String()), o.args...).Exec(func(tag pgconn.CommandTag) error {
		*held = tag.RowsAffected() == 1
		return nil
	})
	switch len(c.remove) {
	case 0:
	case 1:
		b.Queue(g.t.db.sql(sqlRemoveOneOnce), a.minute, a.id, name, c.remove[0], a.mark())
	default:
		b.Queue(g.t.db.sql(sqlRemoveOnce), a.minute, a.id, name, c.remove, a.mark())
	}
	return b
}

func (g *group) hasObjects() bool {
	for _, r := range g.recs {
		if r.object != "" {
			return true
		}
	}
	return false
}

// blobs stores the records.
func (o *once) blobs(g *group, genArg string) {
	if len(g.recs) == 0 {
		return
	}
	n := g.blobColumns()
	o.add(`, stored AS (INSERT INTO @blobs AS b (tenant, generation, stored_at, id, base, size, data)
		SELECT $3::text, `, genArg, `::bigint, `, o.arg(n.now), `::bigint, `)
	if len(n.ids) == 1 {
		o.add(o.arg(n.ids[0]), `::bytea, `, o.arg(n.bases[0]), `::bytea, `, o.arg(n.sizes[0]), `::bigint, `, o.arg(n.data[0]), `::bytea FROM good`)
	} else {
		o.add(`n.id, n.base, n.size, n.data FROM good, unnest(`, o.arg(n.ids), `::bytea[], `, o.arg(n.bases), `::bytea[], `,
			o.arg(n.sizes), `::bigint[], `, o.arg(n.data), `::bytea[]) AS n (id, base, size, data)`)
	}
	o.add(orTouch, `)`)
}

// rows writes the rows that are set. One that must be absent and was created meanwhile
// gets no value, which fails the transaction.
func (o *once) rows(c *change) {
	var keys, values, absent [][]byte
	var versions []int64
	for _, r := range c.rows {
		if r.kind == fenceRow {
			continue
		}
		keys, versions, values = append(keys, []byte(r.key)), append(versions, r.version), append(values, r.value)
		if r.kind == insertRow {
			absent = append(absent, []byte(r.key))
		}
	}
	if len(keys) == 0 {
		return
	}
	value := `excluded.value`
	o.add(`, written AS (INSERT INTO @rows AS r (tenant, key, version, value) SELECT $3::text, `)
	if len(keys) == 1 {
		o.add(o.arg(keys[0]), `::bytea, `, o.arg(versions[0]), `::bigint, `, o.arg(values[0]), `::bytea FROM good`)
	} else {
		o.add(`n.key, n.version, n.value FROM good, unnest(`, o.arg(keys), `::bytea[], `, o.arg(versions), `::bigint[], `,
			o.arg(values), `::bytea[]) AS n (key, version, value)`)
	}
	switch len(absent) {
	case 0:
	case len(keys):
		value = `NULL`
	default:
		value = `CASE WHEN r.key = ANY(` + o.arg(absent) + `::bytea[]) THEN NULL ELSE excluded.value END`
	}
	o.add(` ON CONFLICT (tenant, key) DO UPDATE SET version = excluded.version, value = `, value, `)`)
}
