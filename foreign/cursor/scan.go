package cursor

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/ncruces/go-sqlite3"
)

// table names a table of two columns.
type table struct{ name, key, value string }

var (
	diskTable = table{"cursorDiskKV", "key", "value"}
	itemTable = table{"ItemTable", "key", "value"}
	blobTable = table{"blobs", "id", "data"}
	metaTable = table{"meta", "key", "value"}
)

// keyRange is the keys k with start <= k < end; an empty end means no end.
type keyRange struct{ start, end string }

// prefixRange returns the range of the keys with prefix p.
func prefixRange(p string) keyRange {
	end := []byte(p)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return keyRange{p, string(end)}
}

// row is one row of a table; which parts are filled depends on the scan.
type row struct {
	key   string
	value Value
	size  int64
}

// scanKind is what a scan reads of each row.
type scanKind int

const (
	scanKeys  scanKind = iota // from the index alone, without values
	scanSizes                 // storage class and size: the first page of each row
	scanRows                  // everything
)

func (t table) scanSQL(kind scanKind, bounded bool) string {
	columns := t.key
	switch kind {
	case scanSizes:
		columns += ", typeof(" + t.value + "), octet_length(" + t.value + ")"
	case scanRows:
		columns += ", " + t.valueColumns()
	}
	sql := "SELECT " + columns + " FROM " + t.name + " WHERE " + t.key + " >= ?1"
	if bounded {
		sql += " AND " + t.key + " < ?2"
	}
	return sql + " ORDER BY " + t.key
}

// scan yields the rows of a range in key order. It reads in short transactions, so
// that the owner of the file is never blocked; rows that change meanwhile may be seen
// in either version.
func (d *database) scan(ctx context.Context, t table, r keyRange, kind scanKind) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for done := false; !done; {
			batch, full, err := d.scanBatch(ctx, t, r, kind)
			for _, item := range batch {
				if !yield(item, nil) {
					return
				}
			}
			if err != nil {
				yield(row{}, err)
				return
			}
			done = !full
			if full {
				// The next key in binary order.
				r.start = batch[len(batch)-1].key + "\x00"
			}
		}
	}
}

// scanBatch returns the first rows of a range, and whether there may be more. With an
// error it returns the rows read before.
func (d *database) scanBatch(ctx context.Context, t table, r keyRange, kind scanKind) (batch []row, full bool, err error) {
	err = d.read(ctx, func(c *conn) error {
		batch, full = nil, false
		s, err := c.stmt(t.scanSQL(kind, r.end != ""))
		if err != nil {
			return err
		}
		if err := bindRange(s, r); err != nil {
			return err
		}
		var spent budget
		for s.Step() {
			item, err := c.scanRow(s, t, kind)
			if err != nil {
				return err
			}
			// A damaged tree can contain a loop.
			if item.key < r.start || (len(batch) > 0 && item.key <= batch[len(batch)-1].key) {
				return fmt.Errorf("%w: keys of %s out of order", ErrCorrupt, t.name)
			}
			batch = append(batch, item)
			if spent.spent(len(item.value.Data)) {
				full = true
				return nil
			}
		}
		return s.Err()
	})
	return batch, full, err
}

func bindRange(s *sqlite3.Stmt, r keyRange) error {
	if err := s.BindText(1, r.start); err != nil {
		return err
	}
	if r.end == "" {
		return nil
	}
	return s.BindText(2, r.end)
}

func (c *conn) scanRow(s *sqlite3.Stmt, t table, kind scanKind) (row, error) {
	item := row{key: s.ColumnText(0)}
	var err error
	switch kind {
	case scanSizes:
		item.value.Class = classByName[s.ColumnText(1)]
		item.size = s.ColumnInt64(2)
	case scanRows:
		item.value, err = c.columnValue(s, t, 1)
		item.size = int64(len(item.value.Data))
	}
	return item, errors.Join(err, s.Err())
}

// get returns the value of a key; a missing row has class ClassNull, as a
// tombstone has.
func (d *database) get(ctx context.Context, t table, key string) (Value, error) {
	var v Value
	err := d.read(ctx, func(c *conn) error {
		var err error
		v, err = c.get(t, key)
		return err
	})
	return v, err
}

func (c *conn) get(t table, key string) (Value, error) {
	s, err := c.stmt("SELECT " + t.valueColumns() + " FROM " + t.name + " WHERE " + t.key + " = ?1")
	if err != nil {
		return Value{}, err
	}
	if err := s.BindText(1, key); err != nil {
		return Value{}, err
	}
	var v Value
	if s.Step() {
		v, err = c.columnValue(s, t, 0)
	}
	err = errors.Join(err, s.Err())
	s.Reset()
	return v, err
}

// tables returns the names of the ordinary tables. The table of headers counts only
// if it has the expected columns.
func (d *database) tables(ctx context.Context) (map[string]bool, error) {
	var names map[string]bool
	err := d.read(ctx, func(c *conn) error {
		names = map[string]bool{}
		s, err := c.stmt("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
		if err != nil {
			return err
		}
		for s.Step() {
			names[s.ColumnText(0)] = true
		}
		if s.Err() == nil && names[headerTable] {
			_, err := c.stmt(headerColumns)
			names[headerTable] = err == nil
		}
		return s.Err()
	})
	return names, err
}
