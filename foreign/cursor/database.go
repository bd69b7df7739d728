package cursor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

const (
	// idleClose is how long a connection stays open without use. An open one holds no
	// lock, but on Windows it prevents the editor from replacing the file.
	idleClose = 2 * time.Second
	// maxIdle is how many idle connections are kept.
	maxIdle = 4
	// changeRetries is how often a read starts over because the file changed under a
	// connection without a lock.
	changeRetries = 8
)

// database is one foreign SQLite file. Between calls it holds no lock and, after a
// short time, no open file.
type database struct {
	path  string // as given; may be a symlink
	real  string // resolved path; the WAL is beside it
	opts  Options
	ident os.FileInfo // the file that was opened, to detect a replacement

	mu     sync.Mutex // guards idle, timer, closed
	idle   []*conn
	timer  *time.Timer
	closed bool

	writeMu sync.Mutex // guards writer; one write at a time
	writer  *conn
}

// openDatabase checks that path is a sound database and returns it.
func openDatabase(ctx context.Context, path string, opts Options) (*database, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	ident, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if !ident.Mode().IsRegular() { // opening a FIFO would block forever
		return nil, fmt.Errorf("open %s: %w: not a regular file", path, ErrNotDatabase)
	}
	if _, err := readHeader(real, opts.Rescue); err != nil {
		return nil, err
	}
	return &database{path: path, real: real, opts: opts, ident: ident}, nil
}

// read runs fn on a connection, inside one short read transaction. fn may run several
// times and must start over each time: after a read without locks the file is checked
// for changes, and a WAL can appear or disappear while it is being opened.
func (d *database) read(ctx context.Context, fn func(*conn) error) error {
	var err error
	for attempt := range changeRetries {
		if err := pause(ctx, attempt); err != nil {
			return err
		}
		var final bool
		if final, err = d.tryRead(ctx, fn); final {
			return err
		}
	}
	if err == nil {
		err = fmt.Errorf("read %s: it keeps changing", d.path)
	}
	return fmt.Errorf("%w: %w", ErrBusy, err)
}

// tryRead reports whether the result is valid.
func (d *database) tryRead(ctx context.Context, fn func(*conn) error) (final bool, err error) {
	c, err := d.acquire(ctx)
	if err != nil {
		return !errors.Is(err, sqlite3.CANTOPEN), err
	}
	err = c.transact(ctx, fn)
	if c.unlocked() && c.mark != d.mark() {
		c.close()
		return false, nil
	}
	d.release(c, err)
	return !errors.Is(err, sqlite3.CANTOPEN), d.explain(ctx, err)
}

// pause waits longer before each attempt.
func pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(attempt) * 2 * time.Millisecond):
		return nil
	}
}

func (d *database) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w", d.path, wrapSQLite(ctx, err))
}

// acquire returns an idle connection that still fits the file, or a new one.
func (d *database) acquire(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.sameFile(); err != nil {
		return nil, err
	}
	now := d.mark()
	for {
		c, err := d.takeIdle()
		if err != nil {
			return nil, err
		}
		if c == nil {
			return d.connect(ctx, now)
		}
		if c.fits(now) {
			return c, nil
		}
		c.close()
	}
}

func (d *database) takeIdle() (*conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, blob.ErrClosed
	}
	if len(d.idle) == 0 {
		return nil, nil
	}
	c := d.idle[len(d.idle)-1]
	d.idle = d.idle[:len(d.idle)-1]
	return c, nil
}

// release keeps a connection for a short time. It closes one that had an error.
func (d *database) release(c *conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.idle) >= maxIdle || err != nil {
		c.close()
		return
	}
	d.idle = append(d.idle, c)
	d.touchLocked()
}

// touch postpones the closing of idle connections.
func (d *database) touch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.touchLocked()
}

func (d *database) touchLocked() {
	switch {
	case d.closed:
	case d.timer == nil:
		d.timer = time.AfterFunc(idleClose, d.closeIdle)
	default:
		d.timer.Reset(idleClose)
	}
}

func (d *database) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

func (d *database) closeIdle() {
	d.mu.Lock()
	idle := d.idle
	d.idle = nil
	d.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
	d.closeWriter()
}

func (d *database) closeWriter() {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if d.writer != nil {
		d.writer.close()
		d.writer = nil
	}
}

// close closes all connections. Running reads finish.
func (d *database) close() error {
	d.mu.Lock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	d.mu.Unlock()
	d.closeIdle()
	return nil
}

// sameFile fails if the path now names another file.
func (d *database) sameFile() error {
	info, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	if !os.SameFile(info, d.ident) {
		return fmt.Errorf("%w: %s", ErrReplaced, d.path)
	}
	return nil
}

// mark records the file and the files beside it, to detect changes without a lock.
type mark struct {
	size, walSize int64
	mtime, walAt  time.Time
	wal, shm      bool
}

func (d *database) mark() mark {
	var m mark
	if info, err := os.Stat(d.real); err == nil {
		m.size, m.mtime = info.Size(), info.ModTime()
	}
	if info, err := os.Stat(d.real + "-wal"); err == nil {
		m.wal, m.walSize, m.walAt = true, info.Size(), info.ModTime()
	}
	_, err := os.Stat(d.real + "-shm")
	m.shm = err == nil
	return m
}
