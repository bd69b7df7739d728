package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// conn is a connection with its prepared statements. One goroutine uses it at a
// time.
type conn struct {
	*sqlite3.Conn
	prepared map[string]*sqlite3.Stmt
	stamp    stamp // of a frozen store, when it was opened
}

// openConn opens the database file. It never creates one.
func openConn(path string, on *disk, opts *Options, flags sqlite3.OpenFlag) (*conn, error) {
	query := url.Values{"vfs": {on.name}}
	uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: query.Encode()}
	raw, err := sqlite3.OpenFlags(uri.String(), flags|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, prepared: make(map[string]*sqlite3.Stmt)}
	// trusted_schema and cell_size_check make a hostile or damaged file fail instead of
	// running its code. The timeout comes first: another process may be recovering the
	// log while we read the schema.
	err = c.BusyTimeout(opts.busyTimeout())
	if err == nil {
		// Without this, a statement with a range is prepared again whenever other
		// bounds are bound, which takes six times as long as reading a few rows.
		_, err = c.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true)
	}
	if err == nil && on.frozen {
		err = c.Exec(`PRAGMA locking_mode = EXCLUSIVE`) // the index of the log is not shared
	}
	if err == nil {
		err = c.Exec(`PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY`)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// stmt returns the prepared statement for sql, reset and ready to bind.
func (c *conn) stmt(sql string) (*sqlite3.Stmt, error) {
	if s, ok := c.prepared[sql]; ok {
		return s, nil
	}
	s, _, err := c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	c.prepared[sql] = s
	return s, nil
}

// query runs sql with args and calls row for every result. Values that row reads from
// the statement are valid only during the call.
func (c *conn) query(sql string, row func(*sqlite3.Stmt) error, args ...any) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	defer s.Reset()
	if err := bind(s, args); err != nil {
		return err
	}
	for s.Step() {
		if row == nil {
			continue
		}
		if err := row(s); err != nil {
			return err
		}
	}
	return s.Err()
}

// exec runs a statement that returns no rows.
func (c *conn) exec(sql string, args ...any) error { return c.query(sql, nil, args...) }

// text is bound as TEXT; a plain []byte is bound as BLOB.
func bind(s *sqlite3.Stmt, args []any) error {
	for i, arg := range args {
		var err error
		switch v := arg.(type) {
		case nil:
			err = s.BindNull(i + 1)
		case int64:
			err = s.BindInt64(i+1, v)
		case int:
			err = s.BindInt(i+1, v)
		case string:
			err = s.BindText(i+1, v)
		case []byte:
			if v == nil {
				v = []byte{} // a nil slice would be bound as NULL
			}
			err = s.BindBlob(i+1, v)
		default:
			err = fmt.Errorf("cannot bind %T", arg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pragma returns the single value of a pragma as text.
func (c *conn) pragma(name string) (string, error) {
	var value string
	err := c.query("PRAGMA "+name, func(s *sqlite3.Stmt) error {
		value = s.ColumnText(0)
		return nil
	})
	return value, err
}

// close closes the statements and the connection.
func (c *conn) close() error {
	for _, s := range c.prepared {
		s.Close()
	}
	c.prepared = nil
	return c.Conn.Close()
}

// pool hands out reading connections, at most as many as its capacity.
type pool struct {
	open   func() (*conn, error)
	stamp  func() stamp // nil unless the store is frozen
	idle   chan *conn
	room   chan struct{}
	closed chan struct{}
}

func newPool(size int, open func() (*conn, error)) *pool {
	return &pool{
		open:   open,
		idle:   make(chan *conn, size),
		room:   make(chan struct{}, size),
		closed: make(chan struct{}),
	}
}

// with calls fn with a connection that no other caller uses.
func (p *pool) with(ctx context.Context, fn func(*conn) error) error {
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer p.give(c)
	if err := fn(c); err != nil {
		return err
	}
	return p.same(c)
}

// same fails if a frozen store has changed since the connection was opened.
func (p *pool) same(c *conn) error {
	if p.stamp != nil && p.stamp() != c.stamp {
		return errThawed
	}
	return nil
}

// take returns a connection for the caller alone. The caller must give it back.
func (p *pool) take(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-p.closed:
		return nil, blob.ErrClosed
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case c := <-p.idle:
		if p.same(c) == nil {
			return c, nil
		}
		c.close()
	default:
	}
	c, err := p.openNow()
	if err != nil {
		<-p.room
		return nil, sqlError("open a reading connection", err)
	}
	return c, nil
}

func (p *pool) openNow() (*conn, error) {
	var before stamp
	if p.stamp != nil {
		before = p.stamp()
	}
	c, err := p.open()
	if err == nil {
		c.stamp = before
	}
	return c, err
}

func (p *pool) give(c *conn) {
	p.idle <- c
	<-p.room
}

// close waits until no connection is in use and closes them all.
func (p *pool) close() {
	close(p.closed)
	for range cap(p.room) {
		p.room <- struct{}{}
	}
	for {
		select {
		case c := <-p.idle:
			c.close()
		default:
			return
		}
	}
}

func (o *Options) busyTimeout() time.Duration {
	if o.BusyTimeout > 0 {
		return o.BusyTimeout
	}
	return 15 * time.Second
}
