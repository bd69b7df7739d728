package cursor

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/stet-dev/stet/foreign/internal/readonly"
)

// access is the way a connection shares the file with other processes.
type access int

const (
	// accessLocked takes SQLite's shared lock, or a reader's mark in the WAL index,
	// during each read.
	accessLocked access = iota
	// accessImmutable takes no lock. It is for a file in WAL mode without a WAL: no
	// process has it open, and a locking reader would create files beside it.
	accessImmutable
	// accessPrivate is for a WAL without an index, as in a copy of two of the three
	// files: no process has it open, and the index is built in a private place.
	accessPrivate
	// accessWrite is a connection that writes.
	accessWrite
)

// conn is a connection with its prepared statements.
type conn struct {
	*sqlite3.Conn
	access access
	mark   mark // the files when it was opened
	shmDir string
	stmts  map[string]*sqlite3.Stmt

	maxValue int // size limit of values
}

// connect opens a read connection, in the way that suits the files beside the
// database.
func (d *database) connect(ctx context.Context, now mark) (*conn, error) {
	header, err := readHeader(d.real, d.opts.Rescue)
	if err != nil {
		return nil, err
	}
	c := &conn{mark: now, access: chooseAccess(header, now)}
	query := url.Values{"mode": {"ro"}, "vfs": {readonly.VFS}}
	switch c.access {
	case accessImmutable:
		query.Set("immutable", "1")
	case accessPrivate:
		if c.shmDir, err = os.MkdirTemp("", "stet-foreign-"); err != nil {
			return nil, fmt.Errorf("make a place for the index of %s: %w", d.path, err)
		}
		query.Set("shm", filepath.Join(c.shmDir, "shm"))
	}
	readonly.Register()
	if err := c.open(ctx, d.uri(query), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI, d.opts); err != nil {
		c.close()
		return nil, fmt.Errorf("open %s: %w", d.path, wrapSQLite(ctx, err))
	}
	return c, nil
}

// connectWriter opens a connection that may write.
func (d *database) connectWriter(ctx context.Context) (*conn, error) {
	if err := d.sameFile(); err != nil {
		return nil, err
	}
	c := &conn{access: accessWrite}
	err := c.open(ctx, d.uri(url.Values{"mode": {"rw"}}), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI, d.opts)
	if err == nil {
		err = c.Exec("PRAGMA synchronous=FULL")
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("open %s for writing: %w", d.path, wrapSQLite(ctx, err))
	}
	return c, nil
}

func chooseAccess(h fileHeader, now mark) access {
	switch {
	case h.wal && !now.wal:
		return accessImmutable
	case h.wal && !now.shm && vfs.SupportsSharedMemory:
		return accessPrivate
	}
	return accessLocked
}

// uri returns the path as a URI for SQLite, with an escaped query.
func (d *database) uri(query url.Values) string {
	path := filepath.ToSlash(d.real)
	if filepath.VolumeName(d.real) != "" {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// open connects and disables everything that a hostile file could exploit. After an
// error the caller closes the connection.
func (c *conn) open(ctx context.Context, uri string, flags sqlite3.OpenFlag, opts Options) (err error) {
	defer recoverDriver(&err)
	if c.Conn, err = sqlite3.OpenFlags(uri, flags); err != nil {
		return err
	}
	c.stmts = map[string]*sqlite3.Stmt{}
	c.SetInterrupt(ctx)
	c.maxValue = opts.maxValue()
	for _, off := range []sqlite3.DBConfig{sqlite3.DBCONFIG_TRUSTED_SCHEMA, sqlite3.DBCONFIG_ENABLE_VIEW, sqlite3.DBCONFIG_ENABLE_TRIGGER} {
		if _, err := c.Config(off, false); err != nil {
			return err
		}
	}
	on := []sqlite3.DBConfig{sqlite3.DBCONFIG_DEFENSIVE}
	if c.access != accessWrite {
		on = append(on, sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE)
	}
	for _, op := range on {
		if _, err := c.Config(op, true); err != nil {
			return err
		}
	}
	if err := c.BusyTimeout(opts.busyTimeout()); err != nil {
		return err
	}
	return c.Exec("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-2048")
}

func (c *conn) close() {
	defer recoverDriver(new(error))
	if c.shmDir != "" {
		defer os.RemoveAll(c.shmDir)
	}
	for _, s := range c.stmts {
		s.Close()
	}
	c.stmts = nil
	if c.Conn != nil {
		c.Conn.Close()
	}
}

// recoverDriver turns a panic of the driver into an error. The driver panics when
// SQLite runs out of memory, which a hostile file can cause.
func recoverDriver(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: the driver failed: %v", ErrCorrupt, r)
	}
}

func (c *conn) unlocked() bool {
	return c.access == accessImmutable || c.access == accessPrivate
}

// fits reports whether the connection's access mode still suits the file.
func (c *conn) fits(now mark) bool {
	if c.unlocked() {
		return c.mark == now
	}
	// If a WAL or its index appeared or disappeared, another mode is needed.
	return c.mark.wal == now.wal && c.mark.shm == now.shm
}

// transact runs fn inside a read transaction.
func (c *conn) transact(ctx context.Context, fn func(*conn) error) (err error) {
	defer recoverDriver(&err)
	c.SetInterrupt(ctx)
	if err := c.Exec("BEGIN"); err != nil {
		return err
	}
	err = fn(c)
	for _, s := range c.stmts {
		if s.Busy() {
			s.Reset()
		}
	}
	// Ending the transaction must not depend on ctx.
	c.SetInterrupt(context.Background())
	if end := c.Exec("ROLLBACK"); err == nil && end != nil {
		return end
	}
	return err
}

// stmt returns the prepared statement of a text, ready to be bound.
func (c *conn) stmt(sql string) (*sqlite3.Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		s.Reset()
		return s, s.ClearBindings()
	}
	s, _, err := c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	c.stmts[sql] = s
	return s, nil
}

// budget ends a batch before its transaction takes too long.
type budget struct {
	started time.Time
	rows    int
	bytes   int
}

const (
	batchRows  = 4096
	batchBytes = 4 << 20
	batchTime  = 25 * time.Millisecond
)

// spent counts a row and reports whether the batch is full.
func (b *budget) spent(bytes int) bool {
	if b.started.IsZero() {
		b.started = time.Now()
	}
	b.rows++
	b.bytes += bytes
	return b.rows >= batchRows || b.bytes >= batchBytes ||
		(b.rows%64 == 0 && time.Since(b.started) >= batchTime)
}
