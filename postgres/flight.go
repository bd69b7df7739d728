package postgres

import (
	"bytes"
	"context"
	"runtime"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// Reads that wait at the same time share a round trip, as commits do: reads that arrive while
// others are on their way form the next flight, with one query for all rows, one for all blobs
// and one for all short scans of a kind. A caller that reads a lot should read from several
// goroutines. A lone read never waits for others.

const (
	// flights is how many round trips of reads a tenant has at once on a node. With more,
	// fewer reads share one.
	flights = 2
	// maxFlight limits the reads of one flight.
	maxFlight = 256
	// maxShared is the largest limit of a scan that shares a flight: longer ones are
	// worth one of their own.
	maxShared = 32
)

// question is a read that waits for its answer: of a row, of a blob or of a page.
type question struct {
	key  string   // a row, unless it is empty
	id   blob.ID  // a blob, unless it is zero
	bare bool     // without the content of the blob
	in   kv.Range // otherwise a scan
	kind scanKind

	done chan struct{} // closed when what follows is known
	err  error
	rows []kv.Row // at most one, for a row
	blob *storedBlob
}

// storedBlob is the row of a blob.
type storedBlob struct {
	object     *string
	size       int64
	data, base []byte
}

// ask waits until a flight has answered.
func (t *Tenant) ask(ctx context.Context, q *question) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.done = make(chan struct{})
	t.readMu.Lock()
	t.questions = append(t.questions, q)
	start := t.flying < flights
	if start {
		t.flying++
	}
	t.readMu.Unlock()
	if start && !t.db.begin(t.fly) {
		return blob.ErrClosed
	}
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.db.ctx.Done():
		return blob.ErrClosed
	}
}

// fly answers questions while there are any.
func (t *Tenant) fly() {
	for {
		t.board()
		t.readMu.Lock()
		n := min(len(t.questions), maxFlight)
		if n == 0 {
			t.flying--
			t.readMu.Unlock()
			return
		}
		f := &flight{t: t, questions: t.questions[:n:n]}
		t.questions = t.questions[n:]
		t.readMu.Unlock()
		err := t.db.read(t.db.ctx, f.run)
		for _, q := range f.questions {
			if q.err == nil {
				q.err = err
			}
			close(q.done)
		}
	}
}

// board lets concurrent reads travel together. It only yields, and only while more reads
// arrive, so a lone read never waits.
func (t *Tenant) board() {
	for before := -1; ; {
		t.readMu.Lock()
		n := len(t.questions)
		t.readMu.Unlock()
		if n == before || n >= maxFlight {
			return
		}
		before = n
		runtime.Gosched()
	}
}

// flight holds the reads of one round trip.
type flight struct {
	t         *Tenant
	questions []*question
}

const (
	sqlReadRow   = `SELECT key, version, value FROM @rows WHERE tenant = $1 AND key = $2`
	sqlReadRows  = `SELECT r.key, r.version, r.value` + eachRow
	sqlReadBlob  = `SELECT id, object, size, data, base FROM @blobs WHERE tenant = $1 AND id = $2`
	sqlReadBlobs = `SELECT b.id, b.object, b.size, b.data, b.base` + eachBlob
	sqlLookBlob  = `SELECT id, object, size, NULL::bytea, base FROM @blobs WHERE tenant = $1 AND id = $2`
	sqlLookBlobs = `SELECT b.id, b.object, b.size, NULL::bytea, b.base` + eachBlob
	sqlHasBlobs  = `SELECT b.id` + eachBlob

	// Each key is looked up by itself. With "= ANY", a plan that the server made when the
	// tables were small reads all rows of the tenant, until it has counted them.
	eachRow = ` FROM unnest($2::bytea[]) AS n (key)
		CROSS JOIN LATERAL (SELECT key, version, value FROM @rows WHERE tenant = $1 AND key = n.key LIMIT 1) r`
	eachBlob = ` FROM unnest($2::bytea[]) AS n (id)
		CROSS JOIN LATERAL (SELECT id, object, size, data, base FROM @blobs WHERE tenant = $1 AND id = n.id LIMIT 1) b`
)

// run sends it. It may run again after a failure.
func (f *flight) run() error {
	ctx, cancel := context.WithTimeout(f.t.db.ctx, 2*f.t.db.opts.StatementTimeout)
	defer cancel()
	b, db := &pgx.Batch{}, f.t.db
	rows, blobs, bare := make(map[string][]*question), make(map[blob.ID][]*question), make(map[blob.ID][]*question)
	scans := make(map[scanKind][]*question)
	var keys [][]byte
	for _, q := range f.questions {
		q.rows, q.blob = nil, nil
		switch {
		case q.key != "":
			if rows[q.key] == nil {
				keys = append(keys, []byte(q.key))
			}
			rows[q.key] = append(rows[q.key], q)
		case q.bare:
			bare[q.id] = append(bare[q.id], q)
		case !q.id.IsZero():
			blobs[q.id] = append(blobs[q.id], q)
		default:
			scans[q.kind] = append(scans[q.kind], q)
		}
	}
	for kind, some := range scans {
		f.queueScans(b, kind, some)
	}
	if len(keys) > 0 {
		f.queue(b, sqlReadRow, sqlReadRows, keys).Query(func(found pgx.Rows) error {
			all, err := collectRows(found)
			for _, row := range all {
				for i, q := range rows[row.Key] {
					if i > 0 {
						row.Value = bytes.Clone(row.Value)
					}
					q.rows = []kv.Row{row}
				}
			}
			return err
		})
	}
	if len(blobs) > 0 {
		f.queue(b, sqlReadBlob, sqlReadBlobs, idsOf(blobs)).Query(func(found pgx.Rows) error { return readBlobs(found, blobs) })
	}
	if len(bare) > 0 {
		f.queue(b, sqlLookBlob, sqlLookBlobs, idsOf(bare)).Query(func(found pgx.Rows) error { return readBlobs(found, bare) })
	}
	return db.pool.SendBatch(ctx, b).Close()
}

// queue adds the query for one key or for several.
func (f *flight) queue(b *pgx.Batch, one, many string, keys [][]byte) *pgx.QueuedQuery {
	if len(keys) == 1 {
		return b.Queue(f.t.db.sql(one), f.t.name, keys[0])
	}
	return b.Queue(f.t.db.sql(many), f.t.name, keys)
}

func idsOf(asked map[blob.ID][]*question) [][]byte {
	ids := make([][]byte, 0, len(asked))
	for id := range asked {
		ids = append(ids, id.Bytes())
	}
	return ids
}

func collectRows(found pgx.Rows) (all []kv.Row, err error) {
	var key, value []byte
	var version int64
	_, err = pgx.ForEachRow(found, []any{&key, &version, &value}, func() error {
		all = append(all, kv.Row{Key: string(key), Version: uint64(version), Value: value})
		value = nil
		return nil
	})
	return all, err
}

func readBlobs(found pgx.Rows, asked map[blob.ID][]*question) error {
	var id []byte
	var s storedBlob
	_, err := pgx.ForEachRow(found, []any{&id, &s.object, &s.size, &s.data, &s.base}, func() error {
		for i, q := range asked[blob.ID(id)] {
			one := s
			if i > 0 {
				one.data = bytes.Clone(s.data)
			}
			q.blob = &one
		}
		s = storedBlob{}
		return nil
	})
	return err
}
