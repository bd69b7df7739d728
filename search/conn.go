package search

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/fault"
)

// conn is a connection with its prepared statements. One goroutine uses it at a
// time.
type conn struct {
	*sqlite3.Conn
	prepared map[string]*sqlite3.Stmt
}

// busyTimeout is how long to wait for another process that holds the index.
const busyTimeout = 30 * time.Second

// openConn opens the database at path or, if that is empty, one in memory.
func openConn(path string) (*conn, error) {
	name := ":memory:"
	if path != "" {
		if err := private(path); err != nil {
			return nil, err
		}
		uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}
		name = uri.String()
	}
	raw, err := sqlite3.OpenFlags(name, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, prepared: make(map[string]*sqlite3.Stmt)}
	err = errors.Join(c.BusyTimeout(busyTimeout), register(c.Conn))
	if err == nil {
		// NORMAL can lose the last updates in a power failure, but not their order,
		// and the next Update repeats them.
		err = c.Exec(`PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON;
			PRAGMA temp_store = MEMORY; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL`)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// private creates the file before the library does, readable only by its owner.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

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

// query runs sql and calls row for every result.
func (c *conn) query(sql string, row func(*sqlite3.Stmt), args ...any) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	defer s.Reset()
	for i, arg := range args {
		if err := bind(s, i+1, arg); err != nil {
			return err
		}
	}
	for s.Step() {
		if row != nil {
			row(s)
		}
	}
	return s.Err()
}

func (c *conn) exec(sql string, args ...any) error { return c.query(sql, nil, args...) }

func bind(s *sqlite3.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case int64:
		return s.BindInt64(i, v)
	case int:
		return s.BindInt(i, v)
	case uint64:
		return s.BindInt64(i, int64(v)) // only compared for equality
	case float64:
		return s.BindFloat(i, v)
	case bool:
		return s.BindBool(i, v)
	case string:
		return s.BindText(i, v)
	case []byte:
		return s.BindBlob(i, v)
	}
	return fmt.Errorf("cannot bind %T", arg)
}

// write runs fn in a transaction.
func (c *conn) write(fn func() error) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		err = errors.Join(err, c.rollback())
	}
	return err
}

// read runs fn on one state of the index.
func (c *conn) read(fn func() error) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	err := fn()
	return errors.Join(err, c.rollback())
}

// rollback ends a transaction, unless an error has ended it.
func (c *conn) rollback() error {
	if c.GetAutocommit() {
		return nil
	}
	old := c.SetInterrupt(context.Background()) // a done context would interrupt this too
	defer c.SetInterrupt(old)
	return c.exec("ROLLBACK")
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// damaged reports whether an error means that the file is damaged.
func damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, errSchema)
}

var (
	errSchema = fault.New(fault.Damaged, "the search index has another schema")
	errNewer  = fault.Named(fault.NewerFormat, "newer-search-file", "the search index has a newer format")
)
