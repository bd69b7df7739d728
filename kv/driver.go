package kv

import "iter"

// pageRows is how many rows Paged reads at a time.
const pageRows = 256

// Paged is Scan for drivers that read a page of rows at a time, so that they hold no
// connection while the loop body uses the store. page returns the first rows of a
// range, or the last ones with Reverse, and at most limit.
func Paged(in Range, opts ScanOptions, page func(in Range, limit int) ([]Row, error)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		in, left := in, opts.Limit
		for !in.Empty() {
			size := pageRows
			if opts.Limit > 0 {
				size = min(size, left)
			}
			rows, err := page(in, size)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			left -= len(rows)
			if len(rows) < size || opts.Limit > 0 && left == 0 {
				return
			}
			if last := rows[len(rows)-1].Key; opts.Reverse {
				in.End = last
			} else {
				in.Start = last + "\x00"
			}
		}
	}
}

// Touches reports whether the batch may change a row of the range.
func (b *Batch) Touches(in Range) bool {
	for _, s := range b.Set {
		if in.Contains(s.Key) {
			return true
		}
	}
	for _, key := range b.Delete {
		if in.Contains(key) {
			return true
		}
	}
	for _, r := range b.DeleteRange {
		if r.overlaps(in) {
			return true
		}
	}
	return false
}

func (r Range) overlaps(o Range) bool {
	return (r.End == "" || o.Start < r.End) && (o.End == "" || r.Start < o.End)
}
