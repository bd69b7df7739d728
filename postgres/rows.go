package postgres

import (
	"context"
	"iter"

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
	q := &question{key: key}
	if err := r.t.ask(ctx, q); err != nil {
		return kv.Row{}, r.t.db.wrap(ctx, "read row", err)
	}
	if len(q.rows) == 0 {
		return kv.Row{}, kv.NotFound(key)
	}
	return q.rows[0], nil
}

// Scan implements kv.Store.
func (r *Rows) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return kv.Paged(in, opts, func(part kv.Range, limit int) ([]kv.Row, error) {
		if opts.Limit == 0 && part == in {
			return r.firstPage(ctx, in, opts, limit)
		}
		return r.page(ctx, part, opts, limit)
	})
}

// firstPage is page for the beginning of a scan without a limit. Most of those are of a
// few rows, such as the saves of a conversation: these share a flight.
func (r *Rows) firstPage(ctx context.Context, in kv.Range, opts kv.ScanOptions, limit int) ([]kv.Row, error) {
	few, err := r.page(ctx, in, opts, min(limit, maxShared))
	if err != nil || len(few) < maxShared || len(few) == limit {
		return few, err
	}
	if last := few[len(few)-1].Key; opts.Reverse {
		in.End = last
	} else {
		in.Start = last + "\x00"
	}
	more, err := r.page(ctx, in, opts, limit-len(few))
	return append(few, more...), err
}

func (r *Rows) page(ctx context.Context, in kv.Range, opts kv.ScanOptions, limit int) ([]kv.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	kind := scanKind{reverse: opts.Reverse, keysOnly: opts.KeysOnly, bounded: in.End != "", limit: limit}
	db := r.t.db
	if limit <= maxShared {
		q := &question{in: in, kind: kind}
		err := r.t.ask(ctx, q)
		return q.rows, db.wrap(ctx, "scan rows", err)
	}
	var page []kv.Row
	err := db.read(ctx, func() error {
		rows, err := db.pool.Query(ctx, db.sql(kind.sql()), kind.args(r.t.name, in)...)
		if err != nil {
			return err
		}
		page, err = collectRows(rows)
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
