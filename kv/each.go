package kv

import (
	"context"
	"errors"
	"iter"

	"github.com/stet-dev/stet/blob"
)

// eachPage is how many rows Each reads at once.
const eachPage = 512

// Damaged reports whether an error means that a stored row can never be read: its
// bytes have changed, a newer release wrote it, or its data key is lost. Other rows
// can still be read.
func Damaged(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewerFormat) || errors.Is(err, blob.ErrWrongKey)
}

// Each yields the rows of a range like Scan, but does not stop at a row that cannot be
// read: it yields the row's key with an error and goes on. An error without a key ends
// the sequence. Each reads a page at a time, so no scan holds a connection while the
// caller works.
func Each(ctx context.Context, s Store, in Range, reverse bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		in := in
		for {
			page, err := eachOf(ctx, s, in, ScanOptions{Reverse: reverse, Limit: eachPage})
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, row := range page {
				if errors.Is(row.err, ErrNotFound) {
					continue // deleted since its key was read
				}
				if !yield(row.Row, row.err) {
					return
				}
			}
			if len(page) < eachPage {
				return
			}
			if last := page[len(page)-1].Key; reverse {
				in.End = last
			} else {
				in.Start = last + "\x00"
			}
		}
	}
}

// readRow is a row, or its key and the reason why it cannot be read.
type readRow struct {
	Row
	err error
}

// eachOf reads rows at once or, if a scan ends at a damaged row, one by one.
func eachOf(ctx context.Context, s Store, in Range, opts ScanOptions) ([]readRow, error) {
	page, err := scanned(ctx, s, in, opts)
	if err == nil || ctx.Err() != nil {
		return page, err
	}
	opts.KeysOnly = true
	if page, err = scanned(ctx, s, in, opts); err != nil {
		return nil, err
	}
	for i := range page {
		row, err := s.Get(ctx, page[i].Key)
		if ctx.Err() != nil || errors.Is(err, ErrBusy) {
			return nil, err
		}
		if err == nil {
			page[i].Row = row
		}
		page[i].err = err
	}
	return page, nil
}

func scanned(ctx context.Context, s Store, in Range, opts ScanOptions) ([]readRow, error) {
	page := make([]readRow, 0, eachPage)
	for row, err := range s.Scan(ctx, in, opts) {
		if err != nil {
			return nil, err
		}
		page = append(page, readRow{Row: row})
	}
	return page, nil
}
