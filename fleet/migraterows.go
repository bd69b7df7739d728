package fleet

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/kv"
)

const (
	// migrateRows and migrateBytes limit a commit.
	migrateRows  = 256
	migrateBytes = 1 << 20
)

// difference is a row that differs: one side lacks it, or the values differ.
type difference struct{ from, to *kv.Row }

// differences compares the rows of both sides in key order.
func (m *migration) differences(ctx context.Context, each func(rows int64)) iter.Seq2[difference, error] {
	return func(yield func(difference, error) bool) {
		next, stop := iter.Pull2(m.to.rows.Scan(ctx, kv.Range{}, kv.ScanOptions{}))
		defer stop()
		there, err := pull(next)
		if err != nil {
			yield(difference{}, err)
			return
		}
		rows := int64(0)
		for row, err := range m.from.rows.Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
			for err == nil && there != nil && there.Key < row.Key {
				if !yield(difference{to: there}, nil) {
					return
				}
				there, err = pull(next)
			}
			if err != nil {
				yield(difference{}, err)
				return
			}
			rows++
			each(rows)
			if there == nil || there.Key != row.Key {
				if !yield(difference{from: &row}, nil) {
					return
				}
				continue
			}
			if !bytes.Equal(there.Value, row.Value) && !yield(difference{from: &row, to: there}, nil) {
				return
			}
			if there, err = pull(next); err != nil {
				yield(difference{}, err)
				return
			}
		}
		for there != nil {
			if !yield(difference{to: there}, nil) {
				return
			}
			if there, err = pull(next); err != nil {
				yield(difference{}, err)
				return
			}
		}
	}
}

// pull returns the next row that is not the mark, or nil at the end.
func pull(next func() (kv.Row, error, bool)) (*kv.Row, error) {
	for {
		row, err, ok := next()
		if !ok || err != nil {
			return nil, err
		}
		if row.Key != migrationMark {
			return &row, nil
		}
	}
}

// copyRows makes the rows equal.
func (m *migration) copyRows(ctx context.Context) error {
	batch, size := &kv.Batch{}, 0
	commit := func() error {
		if len(batch.Set)+len(batch.Delete) == 0 {
			return nil
		}
		err := m.to.rows.Commit(ctx, batch)
		m.result.Wrote += int64(len(batch.Set) + len(batch.Delete))
		batch, size = &kv.Batch{}, 0
		return err
	}
	m.result.Rows = 0
	for d, err := range m.differences(ctx, m.countRow("copying rows")) {
		if err != nil {
			return err
		}
		if d.from == nil { // the source had it in an earlier run
			batch.Delete = append(batch.Delete, d.to.Key)
		} else {
			batch.Set = append(batch.Set, kv.Set{Key: d.from.Key, Value: d.from.Value})
			size += len(d.from.Key) + len(d.from.Value)
		}
		if len(batch.Set)+len(batch.Delete) >= migrateRows || size >= migrateBytes {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	return commit()
}

func (m *migration) countRow(doing string) func(int64) {
	return func(rows int64) {
		m.result.Rows = rows
		if rows%migrateRows == 0 {
			m.tell(doing, rows, 0)
		}
	}
}

// compareRows fails at the first difference.
func (m *migration) compareRows(ctx context.Context) error {
	for d, err := range m.differences(ctx, m.countRow("comparing rows")) {
		switch {
		case err != nil:
			return err
		case d.from == nil:
			return fmt.Errorf("%w: row %q is in the target only", ErrDiffers, d.to.Key)
		case d.to == nil:
			return fmt.Errorf("%w: row %q is missing", ErrDiffers, d.from.Key)
		}
		return fmt.Errorf("%w: row %q has a different value", ErrDiffers, d.from.Key)
	}
	return nil
}
