package pack

import (
	"context"
	"iter"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// listedRow is a row and, if it is archived, its conversation.
type listedRow struct {
	kv.Row
	conversation string
}

// scanShadows merges rows with the shadows of archived ones. It reads a page at a time,
// because a caller that holds one connection and waits for a second may wait forever.
func (s *Store) scanShadows(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		left := opts.Limit
		if opts.Limit == 0 {
			left = -1
		}
		for {
			rows, next, err := s.mergedPage(ctx, in, opts)
			if err != nil {
				yield(kv.Row{}, err)
				return
			}
			for _, row := range rows {
				if row.conversation != "" && !opts.KeysOnly {
					s.noteRead(keyspace.Pack(row.conversation)) // its blobs may be next
				}
				if left == 0 || !yield(row.Row, nil) {
					return
				}
				left--
			}
			if next == nil || left == 0 {
				return
			}
			in = *next
		}
	}
}

// mergedPage returns rows and shadows from the start of a range, and the rest of the
// range or nil.
func (s *Store) mergedPage(ctx context.Context, in kv.Range, opts kv.ScanOptions) ([]listedRow, *kv.Range, error) {
	shadows, err := s.shadowPage(ctx, in, opts)
	if err != nil {
		return nil, nil, err
	}
	rows, err := s.rowPage(ctx, in, opts)
	if err != nil {
		return nil, nil, err
	}
	less := func(a, b string) bool { return a < b != opts.Reverse && a != b }
	// If either page is full, rows after its last belong to the next one.
	last, full := "", false
	for _, p := range [][]listedRow{rows, shadows} {
		if len(p) == page && (!full || less(p[page-1].Key, last)) {
			last, full = p[page-1].Key, true
		}
	}
	var out []listedRow
	for len(rows) > 0 || len(shadows) > 0 {
		from := &rows
		if len(rows) == 0 || len(shadows) > 0 && less(shadows[0].Key, rows[0].Key) {
			from = &shadows
		}
		row := (*from)[0]
		*from = (*from)[1:]
		if full && less(last, row.Key) {
			break
		}
		// It is in both places if it was brought back meanwhile: the row counts.
		if len(out) == 0 || out[len(out)-1].Key != row.Key {
			out = append(out, row)
		}
	}
	if !full {
		return out, nil, nil
	}
	if opts.Reverse {
		in.End = last
	} else {
		in.Start = last + "\x00"
	}
	return out, &in, nil
}

func (s *Store) rowPage(ctx context.Context, in kv.Range, opts kv.ScanOptions) ([]listedRow, error) {
	opts.Limit = page
	var out []listedRow
	for row, err := range s.rows.Scan(ctx, in, opts) {
		if err != nil {
			return nil, err
		}
		out = append(out, listedRow{Row: row})
	}
	return out, nil
}

func (s *Store) shadowPage(ctx context.Context, in kv.Range, opts kv.ScanOptions) ([]listedRow, error) {
	rows, err := s.rowPage(ctx, packedRange(in), kv.ScanOptions{Reverse: opts.Reverse})
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		sh, err := decodeShadow(row.Row)
		if err != nil && opts.KeysOnly {
			// A damaged shadow does not hide other keys; Get reports the damage.
			rows[i].Key, rows[i].Value = keyspace.Unpacked(row.Key), nil
			continue
		}
		if err != nil {
			return nil, err
		}
		rows[i] = listedRow{sh.row, sh.conversation}
		if opts.KeysOnly {
			rows[i].Value = nil
		}
	}
	return rows, nil
}
