package pack

import (
	"context"
	"slices"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ScanBeside implements kv.Store. The keys of the range are those in the database; the
// rows beside them may be archived. In a store known to have archived conversations, the
// same read also fetches the rows of the catalog, which hold the rows that lists need.
func (r *rowLayer) ScanBeside(ctx context.Context, in kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	if guardOfRange(in) != "" || inShadows(in) || meetsOwn(in) {
		return kv.EachBeside(ctx, r, in, opts, beside...)
	}
	asked := slices.Clone(beside)
	catalog := make([]int, len(beside)) // where the row of the catalog is, beside each; 0 for none
	for i, b := range beside {
		if !r.s.hasPacks.Load() || !inCatalog(b) {
			continue
		}
		guard := kv.Beside{Skip: b.Skip, Prefix: keyspace.Packs().Start, To: "\x00"}
		if catalog[i] = slices.Index(asked, guard); catalog[i] < 0 {
			catalog[i], asked = len(asked), append(asked, guard)
		}
	}
	all, err := r.s.rows.ScanBeside(ctx, in, opts, asked...)
	if err != nil {
		return nil, err
	}
	for n, found := range all {
		for i, b := range beside {
			switch row := found.Rows[i]; {
			case own.Contains(row.Key):
				found.Rows[i] = kv.Row{}
			case row.Key != "":
				if guard := guardOf(row.Key); guard != "" {
					r.s.noteRead(guard)
				}
			case catalog[i] > 0 && found.Errs[i] == nil:
				found.Rows[i] = r.s.listedRow(found.Rows[catalog[i]], b.Of(found.Key))
			}
		}
		all[n].Rows, all[n].Errs = found.Rows[:len(beside)], found.Errs[:len(beside)]
	}
	return all, kv.FillBeside(ctx, r, all, beside...)
}

// inCatalog reports whether the catalog may have the row: it has heads and last saves.
func inCatalog(b kv.Beside) bool {
	return b.Prefix == headFamily || b.Prefix == keyspace.AllSaves().Start
}

// listedRow returns the last row of a range that a row of the catalog holds, or none. If
// the catalog row is unreadable, a read of the row itself reports why.
func (s *Store) listedRow(row kv.Row, in kv.Range) kv.Row {
	if row.Key == "" {
		return kv.Row{}
	}
	e, err := decodeEntry(row)
	if err != nil || e.state != archived {
		return kv.Row{}
	}
	s.remember(e)
	return e.hotIn(in)
}
