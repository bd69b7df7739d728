package cursor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/foreign/internal/newfile"
)

// ErrExists says that a new file cannot be created because its name, or the name of a
// file that belongs to it, is taken.
var ErrExists = fault.New(fault.Exists, "file already exists")

// CreateOptions configure Create. The zero value, and nil, begin with an empty file.
type CreateOptions struct {
	// Base is a state.vscdb that is copied first. It is only read, even while the editor
	// uses it.
	Base string
}

// editorSchema creates the missing tables of a state.vscdb.
const editorSchema = `CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
	CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);`

// Create makes a new state.vscdb with what write puts into it. The file appears under its
// name when it is complete and on disk; after an error nothing is left. It never changes
// a file: if the path exists, or a journal of SQLite that would be applied to the new
// file, the error is ErrExists.
func Create(ctx context.Context, path string, opts *CreateOptions, write func(*Writer) error) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return fmt.Errorf("create %s: %w: %s", path, ErrExists, path+suffix)
		}
	}
	err := newfile.CreateAt(path, func(temp string) error {
		temp, err := filepath.Abs(temp)
		if err != nil {
			return err
		}
		if opts != nil && opts.Base != "" {
			if err := copyEditor(ctx, opts.Base, temp); err != nil {
				return err
			}
		}
		if err := prepareEditor(ctx, temp); err != nil {
			return fmt.Errorf("create %s: %w", path, err)
		}
		store, err := Open(ctx, temp, &Options{Write: true})
		if err != nil {
			return err
		}
		return errors.Join(write(&Writer{store}), store.Close())
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return err
}

// prepareEditor makes a file, or a copy, ready for rows: it has the tables, and is complete
// without a WAL beside it.
func prepareEditor(ctx context.Context, path string) error {
	c := &conn{access: accessWrite}
	defer c.close()
	d := &database{path: path, real: path}
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE | sqlite3.OPEN_URI
	err := c.open(ctx, d.uri(url.Values{"mode": {"rwc"}}), flags, Options{})
	if err == nil {
		err = c.Exec("PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;" + editorSchema)
	}
	return wrapSQLite(ctx, err)
}

// Copying locks the base for some pages at a time, so that the editor can write in
// between. SQLite then starts over, which it may do a few times. In WAL mode a reader
// does not block writers, and one transaction covers the whole copy.
const (
	copyPages    = 1024
	copyRestarts = 16
)

// copyEditor copies a state.vscdb as it is at one moment.
func copyEditor(ctx context.Context, base, to string) error {
	s, err := Open(ctx, base, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.kind != KindEditor {
		return fmt.Errorf("copy %s: %w: not a state.vscdb but a store of kind %s", base, ErrUnsupported, s.kind)
	}
	c, err := s.main.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	uri := (&database{real: to}).uri(nil)
	if c.mark.wal {
		err = c.transact(ctx, func(c *conn) error {
			if err := c.Exec("SELECT 1 FROM sqlite_schema"); err != nil { // begins to read
				return err
			}
			return c.copyTo(ctx, uri)
		})
	} else {
		err = c.copyTo(ctx, uri)
	}
	if err == nil && c.unlocked() && c.mark != s.main.mark() {
		err = fmt.Errorf("%w: it changed while it was copied", ErrBusy)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", base, wrapSQLite(ctx, err))
	}
	return nil
}

func (c *conn) copyTo(ctx context.Context, uri string) (err error) {
	defer recoverDriver(&err)
	c.SetInterrupt(ctx)
	b, err := c.BackupInit("main", uri)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for left, restarts := -1, 0; ; {
		done, err := b.Step(copyPages)
		if done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		now := b.Remaining()
		if left >= 0 && now >= left {
			if restarts++; restarts > copyRestarts {
				return fmt.Errorf("%w: it keeps changing; try again while the editor is closed", ErrBusy)
			}
		}
		left = now
	}
}
