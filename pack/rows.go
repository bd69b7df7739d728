package pack

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-dev/stet/kv"
)

// Rows returns the driver's rows together with those of packs.
func (s *Store) Rows() kv.Store { return &rowLayer{s} }

// Bare returns only what is in the database, for a collector: it has no rows of archived
// conversations and no records of their agents and checkpoints. Do not write through it.
func (s *Store) Bare() kv.Store { return &bareLayer{s} }

type rowLayer struct{ s *Store }

var errOwn = fmt.Errorf("%w: it belongs to package pack", kv.ErrInvalidKey)

// Get implements kv.Store.
func (r *rowLayer) Get(ctx context.Context, key string) (kv.Row, error) {
	guard := guardOf(key)
	for range looks {
		row, err := r.bare().Get(ctx, key)
		if !errors.Is(err, kv.ErrNotFound) || guard == "" {
			if err == nil && guard != "" {
				r.s.noteRead(guard)
			}
			return row, err
		}
		e, sh, guardErr := r.s.guarded(ctx, guard)
		switch {
		case guardErr != nil:
			return kv.Row{}, guardErr
		case e == nil:
			// Brought back between the two reads, or never there.
			return r.bare().Get(ctx, key)
		case sh != nil && sh.row.Key == key:
			return sh.row, nil
		}
		row, err = r.s.packedRow(ctx, e, key)
		if !errors.Is(err, errGone) {
			return row, err
		}
		if err := r.s.gone(ctx, e, err); err != nil {
			return kv.Row{}, err
		}
	}
	return kv.Row{}, kv.NotFound(key)
}

func (r *rowLayer) bare() kv.Store { return &bareLayer{r.s} }

// packedRow returns a row of a pack.
func (s *Store) packedRow(ctx context.Context, e *entry, key string) (kv.Row, error) {
	if row, ok := e.hotRow(key); ok {
		return row, nil
	}
	c, err := s.contents(ctx, e)
	if err != nil {
		return kv.Row{}, err
	}
	at, ok := c.row(key)
	if !ok {
		return kv.Row{}, kv.NotFound(key)
	}
	return s.readRow(ctx, e, at)
}

func (s *Store) readRow(ctx context.Context, e *entry, at placedRow) (kv.Row, error) {
	value, err := s.read(ctx, e.objects[at.object], at.extent)
	if err != nil {
		return kv.Row{}, fmt.Errorf("read row %q: %w", at.key, err)
	}
	return kv.Row{Key: at.key, Value: value, Version: at.version}, nil
}

// Scan implements kv.Store. Ranges inside one conversation or agent, and those of
// agents and checkpoints, include archived rows; wider ones do not.
func (r *rowLayer) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	if guard := guardOfRange(in); guard != "" {
		return func(yield func(kv.Row, error) bool) {
			g := &groupScan{s: r.s, ctx: ctx, guard: guard, in: in, opts: opts, yield: yield}
			if err := g.run(); err != nil {
				yield(kv.Row{}, err)
			}
		}
	}
	if inShadows(in) {
		return r.s.scanShadows(ctx, in, opts)
	}
	return r.bare().Scan(ctx, in, opts)
}

// groupScan scans rows that are either all in the database or all in a pack.
type groupScan struct {
	s     *Store
	ctx   context.Context // of this one call
	guard string
	in    kv.Range // what is left of it
	opts  kv.ScanOptions
	yield func(kv.Row, error) bool
	ended bool // the caller stopped or reached its limit
}

func (g *groupScan) run() error {
	for range looks {
		if some, err := g.database(); some || err != nil || g.ended {
			return err
		}
		e, _, err := g.s.guarded(g.ctx, g.guard)
		if err != nil {
			return err
		}
		if e == nil {
			// Brought back between the two reads, or never there.
			_, err := g.database()
			return err
		}
		err = g.pack(e)
		if !errors.Is(err, errGone) {
			return err
		}
		if err := g.s.gone(g.ctx, e, err); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the rows keep being archived and brought back", kv.ErrBusy)
}

// database yields the rows in the database.
func (g *groupScan) database() (some bool, err error) {
	for row, err := range g.s.rows.Scan(g.ctx, g.in, g.opts) {
		if err != nil {
			return some, err
		}
		if !some {
			g.s.noteRead(g.guard)
		}
		some = true
		if !g.give(row) {
			return some, nil
		}
	}
	return some, nil
}

// give yields a row and advances the range.
func (g *groupScan) give(row kv.Row) (more bool) {
	if g.opts.Reverse {
		g.in.End = row.Key
	} else {
		g.in.Start = row.Key + "\x00"
	}
	more = g.yield(row, nil)
	if g.opts.Limit > 0 {
		g.opts.Limit--
		more = more && g.opts.Limit > 0
	}
	g.ended = !more
	return more
}

// pack yields the rows of a pack.
func (g *groupScan) pack(e *entry) error {
	if g.opts.Reverse && g.opts.Limit == 1 {
		// The head and the last save, which lists of conversations need, are in the catalog.
		if row := e.hotIn(g.in); row.Key != "" {
			g.giveFrom(row)
			return nil
		}
	}
	c, err := g.s.contents(g.ctx, e)
	if err != nil {
		return err
	}
	rows := slices.Clone(c.within(g.in))
	if g.opts.Reverse {
		slices.Reverse(rows)
	}
	for _, at := range rows {
		row := kv.Row{Key: at.key, Version: at.version}
		if !g.opts.KeysOnly {
			if row, err = g.s.readRow(g.ctx, e, at); err != nil {
				return err
			}
		}
		if err := g.ctx.Err(); err != nil {
			return err
		}
		if !g.giveFrom(row) {
			return nil
		}
	}
	return nil
}

func (g *groupScan) giveFrom(row kv.Row) (more bool) {
	if g.opts.KeysOnly {
		row.Value = nil
	}
	return g.give(row)
}

// Watch implements kv.Store. Archived rows do not change; bringing them back changes
// the database.
func (r *rowLayer) Watch(ctx context.Context, in kv.Range) <-chan struct{} {
	return r.s.rows.Watch(ctx, in)
}

// bareLayer is the driver's store without the rows of this package.
type bareLayer struct{ s *Store }

func (b *bareLayer) Get(ctx context.Context, key string) (kv.Row, error) {
	if own.Contains(key) {
		if err := ctx.Err(); err != nil {
			return kv.Row{}, err
		}
		return kv.Row{}, kv.NotFound(key)
	}
	return b.s.rows.Get(ctx, key)
}

func (b *bareLayer) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	before, behind := in, in
	if before.End == "" || before.End > own.Start {
		before.End = own.Start
	}
	behind.Start = max(behind.Start, own.End)
	switch {
	case in.End != "" && in.End <= own.Start || in.Start >= own.End:
		return b.s.rows.Scan(ctx, in, opts)
	case before.Empty():
		return b.s.rows.Scan(ctx, behind, opts)
	case behind.Empty():
		return b.s.rows.Scan(ctx, before, opts)
	}
	parts := []kv.Range{before, behind}
	if opts.Reverse {
		slices.Reverse(parts)
	}
	return func(yield func(kv.Row, error) bool) {
		o := opts
		for _, part := range parts {
			for row, err := range b.s.rows.Scan(ctx, part, o) {
				if !yield(row, err) || err != nil {
					return
				}
				if o.Limit--; o.Limit == 0 {
					return
				}
			}
			if opts.Limit == 0 {
				o.Limit = 0
			}
		}
	}
}

func (b *bareLayer) ScanBeside(ctx context.Context, in kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	if meetsOwn(in) {
		return kv.EachBeside(ctx, b, in, opts, beside...)
	}
	all, err := b.s.rows.ScanBeside(ctx, in, opts, beside...)
	for _, found := range all {
		for i, row := range found.Rows {
			if own.Contains(row.Key) {
				found.Rows[i] = kv.Row{}
			}
		}
	}
	return all, err
}

// meetsOwn reports whether rows of this package are in a range.
func meetsOwn(in kv.Range) bool { return in.Start < own.End && (in.End == "" || in.End > own.Start) }

// Commit passes a batch on, unless it touches rows of this package. Upkeep commits
// its own marks through it.
func (b *bareLayer) Commit(ctx context.Context, batch *kv.Batch) error {
	if err := checkOwn(batch); err != nil {
		return err
	}
	return b.s.rows.Commit(ctx, batch)
}

func (b *bareLayer) Watch(ctx context.Context, in kv.Range) <-chan struct{} {
	return b.s.rows.Watch(ctx, in)
}

// checkOwn rejects batches that touch rows of this package.
func checkOwn(b *kv.Batch) error {
	bad := func(key string) bool { return own.Contains(key) }
	if slices.ContainsFunc(b.Expect, func(e kv.Expect) bool { return bad(e.Key) }) ||
		slices.ContainsFunc(b.Set, func(s kv.Set) bool { return bad(s.Key) }) ||
		slices.ContainsFunc(b.Delete, bad) {
		return errOwn
	}
	return nil
}
