package cursor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// Usage is the size of a family of keys.
type Usage struct {
	// Family is the common prefix of its keys, such as "agentKv:blob".
	Family string
	Rows   int64
	// Bytes is the size of the keys and values.
	Bytes int64
	// Tombstones counts the rows that only mark a deletion; Rows includes them.
	Tombstones int64
}

// Measure returns the rows and bytes of each family of keys, largest first. It reads
// the sizes of values, not the values.
func (s *Store) Measure(ctx context.Context) ([]Usage, error) {
	sums := map[string]*Usage{}
	add := func(name string, bytes int64, tombstone bool) {
		u := sums[name]
		if u == nil {
			u = &Usage{Family: name}
			sums[name] = u
		}
		u.Rows++
		u.Bytes += bytes
		if tombstone {
			u.Tombstones++
		}
	}
	err := s.measure(ctx, add)
	out := make([]Usage, 0, len(sums))
	for _, u := range sums {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Family, b.Family))
	})
	return out, err
}

// Total adds up families; its Family is empty.
func Total(families []Usage) Usage {
	var sum Usage
	for _, u := range families {
		sum.Rows += u.Rows
		sum.Bytes += u.Bytes
		sum.Tombstones += u.Tombstones
	}
	return sum
}

func (s *Store) measure(ctx context.Context, add func(string, int64, bool)) error {
	if s.kind == KindEditor {
		if !s.tables[diskTable.name] {
			return ctx.Err()
		}
		return s.main.sizes(ctx, diskTable, func(r row) {
			add(family(r.key), int64(len(r.key))+r.size, r.value.Absent())
		})
	}
	return s.Blobs().List(ctx, blob.ID{}, func(info blob.Info) error {
		add("blobs", 2*blob.IDSize+info.Stored, false)
		return nil
	})
}

// sizes yields key and size of every row in file order, which is many times faster
// than key order for a large file.
func (d *database) sizes(ctx context.Context, t table, fn func(row)) error {
	for next, full := int64(math.MinInt64), true; full; {
		var batch []row
		var last int64
		err := d.read(ctx, func(c *conn) (err error) {
			batch, last, full, err = c.sizeBatch(t, next)
			return err
		})
		for _, item := range batch {
			fn(item)
		}
		if err != nil {
			return err
		}
		next = last + 1
	}
	return nil
}

func (c *conn) sizeBatch(t table, from int64) (batch []row, last int64, full bool, err error) {
	s, err := c.stmt("SELECT " + t.key + ", typeof(" + t.value + "), octet_length(" + t.value + "), rowid FROM " + t.name +
		" WHERE rowid >= ?1 ORDER BY rowid")
	if err != nil {
		return nil, 0, false, err
	}
	if err := s.BindInt64(1, from); err != nil {
		return nil, 0, false, err
	}
	var spent budget
	for s.Step() {
		item, err := c.scanRow(s, t, scanSizes)
		if err != nil {
			return batch, last, false, err
		}
		id := s.ColumnInt64(3)
		if id < from || (len(batch) > 0 && id <= last) {
			return batch, last, false, fmt.Errorf("%w: rows of %s out of order", ErrCorrupt, t.name)
		}
		last = id
		batch = append(batch, item)
		if spent.spent(0) {
			return batch, last, id < math.MaxInt64, nil
		}
	}
	return batch, last, false, s.Err()
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
