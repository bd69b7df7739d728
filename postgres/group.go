package postgres

import (
	"bytes"
	crand "crypto/rand"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// group holds what one transaction writes: blobs, and batches that have no key in common,
// so that each can be checked separately.
type group struct {
	t       *Tenant
	reqs    []*request
	recs    []*record
	carries bool // some request needs the blobs
	alone   bool // a batch with ranges is in it
	bytes   int
	keys    map[string]struct{}
	lost    []loss
	outrun  int      // attempts that failed because other transactions were faster
	unused  []string // objects of blobs that were already stored
	general bool     // a few statements were not enough
}

// loss is a blob that cannot be stored.
type loss struct {
	rec *record
	err error
}

func newGroup(t *Tenant) *group { return &group{t: t, keys: make(map[string]struct{})} }

// admit adds a request if it fits.
func (g *group) admit(r *request) bool {
	if r.batch == nil {
		g.reqs, g.carries = append(g.reqs, r), true
		return true
	}
	if g.alone || len(g.reqs) >= maxGroup || g.bytes > maxGroupBytes {
		return false
	}
	ranges := len(r.batch.DeleteRange) > 0
	if ranges && len(g.keys) > 0 {
		return false
	}
	keys := keysOf(r.batch)
	for _, k := range keys {
		if _, taken := g.keys[k]; taken {
			return false
		}
	}
	for _, k := range keys {
		g.keys[k] = struct{}{}
	}
	for _, s := range r.batch.Set {
		g.bytes += len(s.Value)
	}
	g.reqs = append(g.reqs, r)
	g.alone = g.alone || ranges
	g.carries = g.carries || r.needsBlobs()
	return true
}

func keysOf(b *kv.Batch) []string {
	keys := make([]string, 0, len(b.Expect)+len(b.Set)+len(b.Delete))
	for _, e := range b.Expect {
		keys = append(keys, e.Key)
	}
	for _, s := range b.Set {
		keys = append(keys, s.Key)
	}
	return append(keys, b.Delete...)
}

// change holds the changes of a group to rows, grouped by statement. Everything is in the
// order of keys, so that transactions lock rows in one order.
type change struct {
	expect  []kv.Expect // rows that must be at a version
	rows    []rowSet
	remove  [][]byte // keys to be deleted
	ranges  []kv.Range
	keep    [][]byte // keys that ranges must not delete
	refs    []blob.ID
	doubted bool // an expectation contradicts another
	fenced  bool // a row that must stay absent is created and removed again
}

// rowKind is the way to write a row that may or may not exist.
type rowKind int

const (
	upsertRow rowKind = iota // it gets the value
	insertRow                // it must not exist
	fenceRow                 // it will be deleted, and no other transaction may create it meanwhile
)

type rowSet struct {
	kind    rowKind
	key     string
	value   []byte
	version int64
}

// newVersion draws a version at random: all commits would contend for the row of a
// counter. Sixty-two random bits do not repeat on one key.
func newVersion() int64 { return rand.Int64()>>1 + 1 }

func (g *group) change() *change {
	c := &change{}
	carried := make(map[blob.ID]bool, len(g.recs))
	for _, r := range g.recs {
		carried[r.id] = true
	}
	for _, r := range g.reqs {
		if r.batch != nil {
			c.add(r.batch, carried)
		}
	}
	for _, r := range g.recs { // bases of the new blobs
		if !r.base.IsZero() && !carried[r.base] {
			c.refs = append(c.refs, r.base)
		}
	}
	c.sort()
	return c
}

// add adds one batch.
func (c *change) add(b *kv.Batch, carried map[blob.ID]bool) {
	version := newVersion()
	expected := make(map[string]uint64, len(b.Expect))
	for _, e := range b.Expect {
		if before, twice := expected[e.Key]; twice {
			c.doubted = c.doubted || before != e.Version
			continue
		}
		expected[e.Key] = e.Version
		if e.Version != 0 {
			c.expect = append(c.expect, e)
		}
	}
	set := make(map[string]bool, len(b.Set))
	for _, s := range b.Set {
		set[s.Key] = true
		row := rowSet{key: s.Key, value: s.Value, version: version}
		if want, ok := expected[s.Key]; ok && want == 0 {
			row.kind = insertRow
		}
		c.rows = append(c.rows, row)
	}
	gone := make(map[string]bool, len(b.Delete))
	for _, key := range b.Delete {
		if set[key] || gone[key] {
			continue
		}
		gone[key] = true
		if _, ok := expected[key]; !ok {
			c.rows = append(c.rows, rowSet{kind: fenceRow, key: key, value: []byte{}, version: version})
		}
		c.remove = append(c.remove, []byte(key))
	}
	// A row that must stay absent is created and removed again, because an absent row
	// cannot be locked.
	for key, want := range expected {
		if want != 0 || set[key] {
			continue
		}
		c.fenced = true
		c.rows = append(c.rows, rowSet{kind: insertRow, key: key, value: []byte{}, version: version})
		if !gone[key] {
			c.remove = append(c.remove, []byte(key))
		}
	}
	for _, r := range b.DeleteRange {
		if !r.Empty() {
			c.ranges = append(c.ranges, r)
		}
	}
	for _, id := range b.Refs {
		if !carried[id] {
			c.refs = append(c.refs, id)
		}
	}
}

func (c *change) sort() {
	slices.SortFunc(c.rows, func(a, b rowSet) int { return strings.Compare(a.key, b.key) })
	slices.SortFunc(c.remove, bytes.Compare)
	slices.SortFunc(c.refs, blob.ID.Compare)
	c.refs = slices.Compact(c.refs)
	c.keep = make([][]byte, len(c.rows))
	for i, r := range c.rows {
		c.keep[i] = []byte(r.key)
	}
}

// maxRuns limits how many statements write the rows of a transaction.
const maxRuns = 8

// runs splits the rows into groups for one statement each. If few statements suffice,
// they follow the order of keys, which avoids deadlocks; otherwise rows are grouped
// by kind, and the database detects a deadlock.
func (c *change) runs() [][]rowSet {
	var runs [][]rowSet
	for i, r := range c.rows {
		if i == 0 || r.kind != c.rows[i-1].kind {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], r)
	}
	if len(runs) <= maxRuns {
		return runs
	}
	byKind := make([][]rowSet, 3)
	for _, r := range c.rows {
		byKind[r.kind] = append(byKind[r.kind], r)
	}
	return slices.DeleteFunc(byKind, func(rows []rowSet) bool { return len(rows) == 0 })
}

// maxLocked limits the rows that are locked early without need.
const maxLocked = 64

// locks returns the rows to be locked before anything is written, with their expected
// versions. 0 means any: such rows will be written anyway and are locked in the order
// of keys.
func (c *change) locks() (keys [][]byte, versions []int64) {
	want := make(map[string]int64, len(c.expect))
	for _, e := range c.expect {
		want[e.Key] = int64(e.Version)
	}
	if len(c.rows)+len(c.expect) <= maxLocked {
		for _, r := range c.rows {
			if _, expected := want[r.key]; !expected {
				want[r.key] = 0
			}
		}
	}
	for key, version := range want {
		keys, versions = append(keys, []byte(key)), append(versions, version)
	}
	return keys, versions
}

// attempt is the name of one try to run a transaction. The transaction writes it, so that
// it can later be looked up or prevented.
type attempt struct {
	minute int64
	id     []byte
}

func (db *DB) newAttempt() attempt {
	id := make([]byte, 16)
	crand.Read(id)
	return attempt{minute: db.now().Unix() / 60, id: id}
}

// mark is the name that a lookup of the attempt leaves beside the attempt's own.
func (a attempt) mark() []byte { return append(bytes.Clone(a.id), '?') }

// pipeline is the whole transaction. It is sent at once and rolled back as a whole if
// one of its statements fails. If a condition does not hold, it changes nothing, and
// *held stays false. If locked is set, the generation is already locked.
func (g *group) pipeline(a attempt, generation int64, locked bool, held *bool) *pgx.Batch {
	c, b := g.change(), &pgx.Batch{}
	q := func(sql string, args ...any) *pgx.QueuedQuery {
		return b.Queue(g.t.db.sql(sql), append([]any{a.minute, a.id}, args...)...)
	}
	name := g.t.name
	q(sqlCommit)
	if len(g.recs)+len(c.refs) > 0 && !locked {
		q(sqlInGeneration, name, generation)
	}
	if len(c.refs) > 0 {
		refs := idBytes(c.refs)
		b.Queue(g.t.db.sql(sqlTouch), name, refs, generation)
		q(sqlAllThere, name, refs, len(refs))
	}
	if c.doubted {
		q(sqlNever)
	}
	g.queueBlobs(b, q, generation)
	if len(c.ranges) > 0 {
		q(sqlTenantHeld, name)
	}
	if len(c.expect) > 0 {
		keys, versions := c.locks()
		q(sqlExpect, name, keys, versions, len(c.expect))
	}
	if absent := c.absent(); len(absent) > 0 {
		q(sqlAbsent, name, absent)
	}
	for _, rows := range c.runs() {
		queueRows(q, name, rows)
	}
	if len(c.remove) > 0 {
		q(sqlRemove, name, c.remove)
	}
	for _, r := range c.ranges {
		if r.End == "" {
			q(sqlRemoveFrom, name, []byte(r.Start), c.keep)
			q(sqlEmptyFrom, name, []byte(r.Start), c.keep)
		} else {
			q(sqlRemoveRange, name, []byte(r.Start), c.keep, []byte(r.End))
			q(sqlEmptyRange, name, []byte(r.Start), c.keep, []byte(r.End))
		}
	}
	for _, s := range g.beside() {
		b.Queue(s.SQL, append([]any{a.minute, a.id}, s.Args...)...)
	}
	q(sqlCommitted).QueryRow(func(row pgx.Row) error {
		var n int64
		err := row.Scan(&n)
		*held = n == 1
		return err
	})
	return b
}

// beside returns the statements on tables of other packages.
func (g *group) beside() []Statement {
	if g.t.db.opts.Beside == nil {
		return nil
	}
	var batches []*kv.Batch
	for _, r := range g.reqs {
		if r.batch != nil {
			batches = append(batches, r.batch)
		}
	}
	return g.t.db.opts.Beside(g.t.name, batches, g.t.db.sql(named))
}

// absent returns the keys of rows that must not exist.
func (c *change) absent() (keys [][]byte) {
	for _, r := range c.rows {
		if r.kind == insertRow {
			keys = append(keys, []byte(r.key))
		}
	}
	return keys
}

// queueRows writes rows of one kind, with a simpler statement for a single one.
func queueRows(q func(string, ...any) *pgx.QueuedQuery, name string, rows []rowSet) {
	sql := sqlWriteRows[rows[0].kind]
	if len(rows) == 1 {
		q(sql.one, name, []byte(rows[0].key), rows[0].version, rows[0].value)
		return
	}
	keys, versions, values := make([][]byte, len(rows)), make([]int64, len(rows)), make([][]byte, len(rows))
	for i, r := range rows {
		keys[i], versions[i], values[i] = []byte(r.key), r.version, r.value
	}
	q(sql.many, name, keys, versions, values)
}

// queueBlobs stores the records, in the order of their ids.
func (g *group) queueBlobs(b *pgx.Batch, q func(string, ...any) *pgx.QueuedQuery, generation int64) {
	n := g.blobColumns()
	switch len(n.ids) {
	case 0:
	case 1:
		q(sqlStoreBlob, g.t.name, generation, n.now, n.ids[0], n.bases[0], n.sizes[0], n.objects[0], n.data[0])
	default:
		q(sqlStoreBlobs, g.t.name, generation, n.now, n.ids, n.bases, n.sizes, n.objects, n.data)
	}
	g.queueUsed(b)
}

// blobColumns are the columns of the records, in the order of their ids.
type blobColumns struct {
	now        int64
	ids, bases [][]byte
	sizes      []int64
	objects    []*string
	data       [][]byte
}

func (g *group) blobColumns() blobColumns {
	recs := slices.Clone(g.recs)
	slices.SortFunc(recs, func(a, b *record) int { return a.id.Compare(b.id) })
	c := blobColumns{now: time.Now().Unix()}
	for _, r := range recs {
		c.ids, c.bases, c.sizes = append(c.ids, r.id[:]), append(c.bases, r.baseBytes()), append(c.sizes, r.size)
		c.objects, c.data = append(c.objects, r.objectOrNil()), append(c.data, r.data)
	}
	return c
}

// queueUsed finds the objects that were written needlessly.
func (g *group) queueUsed(b *pgx.Batch) {
	var ids [][]byte
	var keys []string
	for _, r := range g.recs {
		if r.object != "" {
			ids, keys = append(ids, r.id[:]), append(keys, r.object)
		}
	}
	g.unused = nil
	if len(keys) == 0 {
		return
	}
	b.Queue(g.t.db.sql(sqlUsed), g.t.name, ids, keys).Query(func(rows pgx.Rows) error {
		used, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, key := range keys {
			if !slices.Contains(used, key) {
				g.unused = append(g.unused, key)
			}
		}
		return err
	})
}

func (r *record) baseBytes() []byte {
	if r.base.IsZero() {
		return nil
	}
	return r.base[:]
}

func (r *record) objectOrNil() *string {
	if r.object == "" {
		return nil
	}
	return &r.object
}

func idBytes(ids []blob.ID) [][]byte {
	out := make([][]byte, len(ids))
	for i := range ids {
		out[i] = ids[i][:]
	}
	return out
}
