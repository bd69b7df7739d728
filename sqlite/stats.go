package sqlite

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/kv"
)

// Count is a number of items and their bytes.
type Count struct{ N, Bytes int64 }

func (c *Count) add(n, bytes int64) {
	c.N += n
	c.Bytes += bytes
}

// Stats describes the content and the disk use of a store.
type Stats struct {
	DatabaseBytes int64 // of the database file
	LogBytes      int64 // of the write-ahead log
	PageSize      int64
	Pages         int64
	FreePages     int64 // of Pages, reused before the file grows

	Blobs   Count            // all of them
	InRows  Count            // those in the database
	InFiles Count            // those in object files
	Deltas  Count            // those that lean on another blob, in rows or files
	Rows    map[string]Count // by family
}

// Stats counts what is durable. family returns the name under which the row with a key is
// counted; nil counts all rows under "". It reads the index pages of the database, not
// the contents.
func (db *DB) Stats(ctx context.Context, family func(key string) string) (Stats, error) {
	s := Stats{Rows: make(map[string]Count)}
	err := db.readers.with(ctx, func(c *conn) error {
		defer c.SetInterrupt(c.SetInterrupt(ctx))
		if err := s.pages(c); err != nil {
			return err
		}
		return s.blobs(c)
	})
	if err != nil {
		if ctx.Err() != nil {
			return Stats{}, ctx.Err()
		}
		return Stats{}, db.readError(ctx, "count blobs", err)
	}
	if s.DatabaseBytes, err = fileSize(db.path()); err != nil {
		return Stats{}, err
	}
	if s.LogBytes, err = fileSize(db.path() + "-wal"); err != nil {
		return Stats{}, err
	}
	return s, s.rows(ctx, db, family)
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, ignoreMissing(err)
	}
	return info.Size(), nil
}

func (s *Stats) pages(c *conn) error {
	for name, to := range map[string]*int64{"page_size": &s.PageSize, "page_count": &s.Pages, "freelist_count": &s.FreePages} {
		value, err := c.pragma(name)
		if err != nil {
			return err
		}
		if *to, err = strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

func (s *Stats) blobs(c *conn) error {
	return c.query(`SELECT file IS NOT NULL, base IS NOT NULL, count(*), sum(size) FROM blobs GROUP BY 1, 2`, func(row *sqlite3.Stmt) error {
		n, bytes := row.ColumnInt64(2), row.ColumnInt64(3)
		s.Blobs.add(n, bytes)
		if row.ColumnBool(0) {
			s.InFiles.add(n, bytes)
		} else {
			s.InRows.add(n, bytes)
		}
		if row.ColumnBool(1) {
			s.Deltas.add(n, bytes)
		}
		return nil
	})
}

// rowPage is how many rows are counted before the connection is released.
const rowPage = 10_000

func (s *Stats) rows(ctx context.Context, db *DB, family func(string) string) error {
	in, n := kv.Range{}, rowPage
	for n == rowPage {
		n = 0
		err := db.readers.with(ctx, func(c *conn) error {
			return c.query(`SELECT key, length(value) FROM rows WHERE key >= ?1 ORDER BY key LIMIT ?2`, func(row *sqlite3.Stmt) error {
				n++
				key, name := row.ColumnText(0), ""
				if family != nil {
					name = family(key)
				}
				count := s.Rows[name]
				count.add(1, int64(len(key))+row.ColumnInt64(1))
				s.Rows[name] = count
				in.Start = key + "\x00"
				return nil
			}, in.Start, rowPage)
		})
		if err != nil {
			return db.readError(ctx, "count rows", err)
		}
	}
	return nil
}
