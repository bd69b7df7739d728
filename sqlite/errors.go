package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

var (
	// ErrNoStore says that there is no store at that place.
	ErrNoStore = fault.New(fault.NotFound, "no store here")
	// ErrForeign says that a directory or file belongs to something else.
	ErrForeign = fault.New(fault.Invalid, "not a stet store")
	// ErrDamaged says that the database is not readable as a store. The files are left as
	// they are.
	ErrDamaged = fault.Named(fault.Damaged, "damaged-store", "store is damaged")
	// ErrNewerFormat says that a later release wrote the store.
	ErrNewerFormat = fault.Named(fault.NewerFormat, "newer-store", "store has a newer format")
	// ErrUnsupported says that the file system or the library cannot keep the
	// promises of a store.
	ErrUnsupported = fault.New(fault.Unsupported, "unsupported")
)

// sqlError converts an error of the SQL library to one that callers can branch on.
func sqlError(doing string, err error) error {
	if err == nil {
		return nil
	}
	var kind error
	switch {
	case errors.Is(err, sqlite3.FULL), errors.Is(err, sqlite3.IOERR_SHMSIZE), // opening it needs room
		errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = blob.ErrFull
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED):
		kind = kv.ErrBusy
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB):
		kind = ErrDamaged
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES):
		kind = blob.ErrReadOnly
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, kind, err)
}

// errSync marks a failed fsync, whatever its reason: the kernel may have dropped the
// data, and another fsync would not report it.
var errSync = errors.New("cannot tell what reached the disk")

// syncError is fileError for a failed fsync.
func syncError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errSync, fileError(doing, err))
}

// unsafeToGoOn reports whether a failure leaves doubt about what the disk holds. A full
// disk and a busy store leave none, unless an fsync failed: the transaction was undone
// before any of it could count. An error that is not the library's leaves none either:
// the caller requested something impossible.
func unsafeToGoOn(err error) bool {
	if errors.Is(err, errSync) || errors.Is(err, sqlite3.IOERR_FSYNC) || errors.Is(err, sqlite3.IOERR_DIR_FSYNC) || errors.Is(err, sqlite3.IOERR_SHMSIZE) {
		return true
	}
	var code sqlite3.ExtendedErrorCode // an error without a message has this type
	return errors.As(err, &code) &&
		!errors.Is(err, blob.ErrFull) && !errors.Is(err, kv.ErrBusy) && !errors.Is(err, blob.ErrReadOnly)
}

// fileError does the same for errors of object files.
func fileError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s: %w: %w", doing, blob.ErrFull, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: %w: %w", doing, blob.ErrReadOnly, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
