package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// DamageKind names a kind of damage.
type DamageKind string

// The kinds of damage that Check finds.
const (
	DamagedDatabase   DamageKind = "database"           // its structure; Detail quotes the library
	MissingGeneration DamageKind = "missing generation" // the store cannot be written without it
	WrongSize         DamageKind = "wrong size"         // content is shorter or longer than its row says
	MissingObject     DamageKind = "missing object"     // a row names a file that is not there
	MissingBase       DamageKind = "missing base"       // a blob leans on a missing one
	OrphanedObject    DamageKind = "orphaned object"    // a file that no row names; harmless, Sweep removes it
)

// Damage is one finding of Check.
type Damage struct {
	Kind   DamageKind
	ID     blob.ID // zero if the damage is not about one blob
	Detail string
}

func (d Damage) String() string {
	if d.ID.IsZero() {
		return fmt.Sprintf("%s: %s", d.Kind, d.Detail)
	}
	return fmt.Sprintf("%s: %s: %s", d.Kind, d.ID, d.Detail)
}

// CheckOptions configure a check; the zero value works.
type CheckOptions struct {
	// Progress is called from time to time with the number of blobs checked and the
	// total.
	Progress func(done, total int64)
}

// CheckReport is the result of a check.
type CheckReport struct {
	Blobs   int64 // rows of blobs
	Objects int64 // blobs in object files
	Damage  []Damage
}

// Check examines the structure of the store while others use it: the database, and
// whether rows, files and bases match. It reads no content; to verify that every blob
// matches its id, read them all through blob.Checked. The report lists the damage. The
// error is set only if the check could not finish.
func (db *DB) Check(ctx context.Context, opts CheckOptions) (CheckReport, error) {
	if opts.Progress == nil {
		opts.Progress = func(int64, int64) {}
	}
	c := checker{db: db, opts: opts}
	for _, step := range []func(context.Context) error{c.database, c.blobs, c.orphans} {
		if err := step(ctx); err != nil {
			return c.report, db.readError(ctx, "check store", err)
		}
	}
	return c.report, nil
}

type checker struct {
	db     *DB
	opts   CheckOptions
	report CheckReport
	total  int64
}

func (c *checker) add(kind DamageKind, id blob.ID, format string, args ...any) {
	c.report.Damage = append(c.report.Damage, Damage{Kind: kind, ID: id, Detail: fmt.Sprintf(format, args...)})
}

// read runs fn on a connection. Damage that stops the library becomes a finding.
func (c *checker) read(ctx context.Context, fn func(*conn) error) error {
	err := c.db.readers.with(ctx, func(conn *conn) error {
		defer conn.SetInterrupt(conn.SetInterrupt(ctx))
		return fn(conn)
	})
	if errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) {
		c.add(DamagedDatabase, blob.ID{}, "%v", err)
		return nil
	}
	if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (c *checker) database(ctx context.Context) error {
	err := c.read(ctx, func(conn *conn) error {
		return conn.query(`PRAGMA integrity_check`, func(s *sqlite3.Stmt) error {
			if line := s.ColumnText(0); line != "ok" {
				c.add(DamagedDatabase, blob.ID{}, "%s", line)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return c.read(ctx, func(conn *conn) error {
		if _, err := generation(conn); errors.Is(err, ErrDamaged) {
			c.add(MissingGeneration, blob.ID{}, "%v", err)
		} else if err != nil {
			return err
		}
		return conn.query(`SELECT count(*) FROM blobs`, func(s *sqlite3.Stmt) error {
			c.total = s.ColumnInt64(0)
			return nil
		})
	})
}

// stored is what a row says about a blob.
type stored struct {
	n, size, length int64
	id, base        blob.ID
	file            string
	baseMissing     bool
}

// blobs checks all rows, a page at a time, so that a long check does not stop the log
// from restarting.
func (c *checker) blobs(ctx context.Context) error {
	after, n := int64(0), listPage
	for n == listPage {
		var page []stored
		err := c.read(ctx, func(conn *conn) error {
			return conn.query(`SELECT n, id, size, base, file, coalesce(length(data), -1),
					base IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs AS b WHERE b.id = blobs.base)
				FROM blobs WHERE n > ?1 ORDER BY n LIMIT ?2`, func(s *sqlite3.Stmt) error {
				one := stored{n: s.ColumnInt64(0), size: s.ColumnInt64(2), length: s.ColumnInt64(5), file: s.ColumnText(4), baseMissing: s.ColumnBool(6)}
				copy(one.id[:], s.ColumnRawBlob(1))
				copy(one.base[:], s.ColumnRawBlob(3))
				page = append(page, one)
				return nil
			}, after, listPage)
		})
		if err != nil {
			return err
		}
		for _, one := range page {
			if err := c.one(ctx, one); err != nil {
				return err
			}
			after = one.n
		}
		n = len(page)
		c.report.Blobs += int64(n)
		c.opts.Progress(c.report.Blobs, c.total)
	}
	return nil
}

func (c *checker) one(ctx context.Context, one stored) error {
	if one.baseMissing {
		c.add(MissingBase, one.id, "it leans on %s", one.base)
	}
	if one.file == "" {
		if one.length != one.size {
			c.add(WrongSize, one.id, "its row has %d bytes, want %d", one.length, one.size)
		}
		return nil
	}
	c.report.Objects++
	info, err := os.Stat(c.db.objects.path(one.id, one.file))
	switch {
	case err == nil && info.Size() != one.size:
		c.add(WrongSize, one.id, "its file has %d bytes, want %d", info.Size(), one.size)
	case errors.Is(err, fs.ErrNotExist):
		named := false
		err := c.read(ctx, func(conn *conn) (err error) {
			named, err = rowNames(conn, one.id, one.file)
			return err
		})
		if err != nil || !named {
			return err // a collector removed it meanwhile
		}
		c.add(MissingObject, one.id, "file %s is missing", one.file)
	case err != nil:
		return err
	}
	return nil
}

// orphans looks for files that no row names. A young file may still get its row.
func (c *checker) orphans(ctx context.Context) error {
	err := c.db.objects.walk(func(info fs.FileInfo, id blob.ID, suffix string) error {
		if time.Since(info.ModTime()) < orphanAge {
			return ctx.Err()
		}
		named := false
		err := c.read(ctx, func(conn *conn) (err error) {
			named, err = rowNames(conn, id, suffix)
			return err
		})
		if err == nil && !named {
			c.add(OrphanedObject, id, "no row names file %s of %d bytes", suffix, info.Size())
		}
		return err
	})
	return ignoreMissing(err)
}
