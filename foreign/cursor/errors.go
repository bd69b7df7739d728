package cursor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is. They are wrapped with the file
// or the key, and with the cause.
var (
	// ErrNotDatabase says that a file is not an SQLite database and does not look like
	// an encrypted one either.
	ErrNotDatabase = fault.New(fault.Unsupported, "not a database")
	// ErrEncrypted says that a file looks like an encrypted database.
	ErrEncrypted = fault.New(fault.Unsupported, "database seems to be encrypted")
	// ErrCorrupt says that the structure of a database file is damaged.
	ErrCorrupt = fault.New(fault.Damaged, "database is corrupt")
	// ErrTruncated says that a database file is shorter than its header says.
	ErrTruncated = fault.New(fault.Damaged, "database is truncated")
	// ErrUnsupported says that a database is sound but of a form that no editor
	// writes, or of an unknown version.
	ErrUnsupported = fault.New(fault.Unsupported, "unsupported format")
	// ErrMissingTable says that a database has none of the tables of a known
	// store.
	ErrMissingTable = fault.New(fault.Unsupported, "no known table")
	// ErrReplaced says that the path now names another file than the one that was
	// opened. Open it again.
	ErrReplaced = fault.New(fault.Stale, "file was replaced")
	// ErrBusy says that another process kept the database locked, or kept changing
	// it, for longer than the busy timeout.
	ErrBusy = fault.New(fault.Busy, "database is busy")
	// ErrNeedsRecovery says that a writer died in the middle of a change, which only a
	// program with write access can roll back. The editor does so when it starts.
	ErrNeedsRecovery = fault.New(fault.Conflict, "database needs recovery by its owner")
	// ErrNotFound says that a store has no such conversation, checkpoint or row.
	ErrNotFound = fault.New(fault.NotFound, "not found")
	// ErrMalformed says that a row cannot be understood.
	ErrMalformed = fault.New(fault.Damaged, "malformed row")
	// ErrNewerVersion says that a row was written by a newer release than the known
	// ones. Its readable part was read.
	ErrNewerVersion = fault.New(fault.NewerFormat, "row has a newer version")
	// ErrWrongKey says that the key of Options does not decrypt a blob, or that the blob
	// is damaged.
	ErrWrongKey = fault.New(fault.WrongKey, "the given key does not decrypt it")
	// ErrDataLoss says that stored state cannot be recovered. A DataLossError, which
	// names the source, always wraps it.
	ErrDataLoss = fault.New(fault.Damaged, "data loss")
)

// DataLossError names the source from which a state could not be read. It wraps
// ErrDataLoss and the cause.
type DataLossError struct {
	// Source names the row or field that refers to the state.
	Source string
	// Err is why it could not be read.
	Err error
}

func (e *DataLossError) Error() string {
	return fmt.Sprintf("%v: cannot read conversation state from %s: %v", ErrDataLoss, e.Source, e.Err)
}

// Unwrap returns ErrDataLoss and the cause.
func (e *DataLossError) Unwrap() []error { return []error{ErrDataLoss, e.Err} }

// sqliteErrors maps result codes to our errors; the first match wins.
var sqliteErrors = []struct {
	code error
	is   error
}{
	{sqlite3.READONLY_ROLLBACK, ErrNeedsRecovery},
	{sqlite3.READONLY_RECOVERY, ErrNeedsRecovery},
	{sqlite3.BUSY_RECOVERY, ErrBusy},
	{sqlite3.IOERR_SHORT_READ, ErrTruncated},
	{sqlite3.BUSY, ErrBusy},
	{sqlite3.LOCKED, ErrBusy},
	{sqlite3.CORRUPT, ErrCorrupt},
	{sqlite3.FORMAT, ErrCorrupt},
	{sqlite3.NOTADB, ErrNotDatabase},
	{sqlite3.TOOBIG, blob.ErrTooLarge},
	{sqlite3.FULL, blob.ErrFull},
	{sqlite3.READONLY, blob.ErrReadOnly},
}

// wrapSQLite converts an error of SQLite to one of this package.
func wrapSQLite(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, sqlite3.INTERRUPT) {
		return ctx.Err()
	}
	for _, m := range sqliteErrors {
		if errors.Is(err, m.code) {
			return fmt.Errorf("%w: %w", m.is, err)
		}
	}
	if errors.Is(err, sqlite3.CANTOPEN) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	return err
}

// OfRow reports whether err concerns only the row that was read, so that others can
// still be read.
func OfRow(err error) bool { return damaged(err) || errors.Is(err, blob.ErrTooLarge) }

// damaged reports whether err means that a database file is damaged.
func damaged(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrNotDatabase)
}
