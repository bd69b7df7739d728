package opencode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/readonly"
)

// attempts is how often a read starts over because the file changed under it.
const attempts = 8

// database is OpenCode's database, which OpenCode may have open. Each read covers at
// most one turn, so that its log can be written back in between.
type database struct {
	path string
	conn *sqlite3.Conn
	// unlocked means that the file is read without locks: no process has it open. files
	// is how it was then.
	unlocked bool
	files    files
	shm      string // private place of the index of the log
}

// files are the database and the files beside it.
type files struct {
	size, logSize  int64
	changed, logAt time.Time
	log, index     bool
}

func look(path string) (f files) {
	if info, err := os.Stat(path); err == nil {
		f.size, f.changed = info.Size(), info.ModTime()
	}
	if info, err := os.Stat(path + "-wal"); err == nil {
		f.log, f.logSize, f.logAt = true, info.Size(), info.ModTime()
	}
	_, err := os.Stat(path + "-shm")
	f.index = err == nil
	return f
}

func openDatabase(path string) (*database, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return &database{path: real}, nil
}

// read runs fn on a connection. fn may run several times and starts over each time.
func (d *database) read(ctx context.Context, fn func(*sqlite3.Conn) error) (err error) {
	for range attempts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err = d.connect(ctx); err != nil {
			d.close()
			if errors.Is(err, sqlite3.CANTOPEN) {
				continue // the log appeared or went while it was opened
			}
			return unreadable(err)
		}
		err = guarded(func() error { return fn(d.conn) })
		if now := look(d.path); now.log != d.files.log || now.index != d.files.index || d.unlocked && now != d.files {
			again := d.unlocked || err != nil
			d.close()
			if again {
				continue
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			d.close()
			return unreadable(err)
		}
		return nil
	}
	return fmt.Errorf("%w: %s keeps changing: %w", foreign.ErrUnreadable, d.path, err)
}

// connect opens the database in the way that suits the files beside it.
func (d *database) connect(ctx context.Context) error {
	if d.conn != nil {
		d.conn.SetInterrupt(ctx)
		return nil
	}
	logged, err := inLogMode(d.path)
	if err != nil {
		return err
	}
	d.files = look(d.path)
	query := url.Values{"mode": {"ro"}, "vfs": {readonly.VFS}}
	switch {
	case logged && !d.files.log:
		// A reader with locks would create files beside it.
		d.unlocked = true
		query.Set("immutable", "1")
	case logged && !d.files.index && vfs.SupportsSharedMemory:
		d.unlocked = true
		if d.shm, err = os.MkdirTemp("", "stet-opencode-"); err != nil {
			return err
		}
		query.Set("shm", filepath.Join(d.shm, "shm"))
	}
	readonly.Register()
	path := filepath.ToSlash(d.path)
	if filepath.VolumeName(d.path) != "" {
		path = "/" + path
	}
	uri := (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
	return guarded(func() error { return d.open(ctx, uri) })
}

// open connects and disables everything that a hostile file could exploit.
func (d *database) open(ctx context.Context, uri string) (err error) {
	if d.conn, err = sqlite3.OpenFlags(uri, sqlite3.OPEN_READONLY|sqlite3.OPEN_URI); err != nil {
		return err
	}
	d.conn.SetInterrupt(ctx)
	for option, on := range map[sqlite3.DBConfig]bool{
		sqlite3.DBCONFIG_TRUSTED_SCHEMA: false, sqlite3.DBCONFIG_ENABLE_VIEW: false, sqlite3.DBCONFIG_ENABLE_TRIGGER: false,
		sqlite3.DBCONFIG_DEFENSIVE: true, sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE: true,
	} {
		if _, err := d.conn.Config(option, on); err != nil {
			return err
		}
	}
	if err := d.conn.BusyTimeout(2 * time.Second); err != nil {
		return err
	}
	return d.conn.Exec("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-2048")
}

func (d *database) close() {
	_ = guarded(func() error {
		if d.conn != nil {
			d.conn.Close()
		}
		return nil
	})
	if d.shm != "" {
		os.RemoveAll(d.shm)
	}
	d.conn, d.shm, d.unlocked = nil, "", false
}

// guarded turns a panic of the driver into an error. It panics when SQLite runs out of
// memory, which a hostile file can cause.
func guarded(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the driver failed: %v", r)
		}
	}()
	return fn()
}

// inLogMode reads from the file whether changes go to a log beside it.
func inLogMode(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, 100)
	if _, err := io.ReadFull(f, start); err != nil || string(start[:16]) != "SQLite format 3\x00" {
		return false, fmt.Errorf("%s is not a database", path)
	}
	return start[18] == 2 || start[19] == 2, nil
}

// query calls row for each row of a query.
func query(c *sqlite3.Conn, sql string, row func(*sqlite3.Stmt) error, args ...string) (err error) {
	s, _, err := c.Prepare(sql)
	if err != nil {
		return err
	}
	defer s.Close()
	for i, a := range args {
		if err := s.BindText(i+1, a); err != nil {
			return err
		}
	}
	for s.Step() {
		if err := row(s); err != nil {
			return err
		}
	}
	return s.Err()
}

func unreadable(err error) error { return fmt.Errorf("%w: %w", foreign.ErrUnreadable, err) }
