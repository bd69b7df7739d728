package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

var (
	// ErrInvalidDSN says that a connection string cannot be understood.
	ErrInvalidDSN = fault.New(fault.Invalid, "invalid connection string")
	// ErrUnavailable says that the database cannot be reached now. A write that
	// fails with it has changed nothing.
	ErrUnavailable = fault.Named(fault.Unreachable, "database-unreachable", "database is unavailable")
	// ErrNoConnection says that the server has no connection left: max_connections, or a
	// limit of the role or the database, is reached.
	ErrNoConnection = fault.Under(kv.ErrBusy, "", "the database has no connection left")
	// ErrDenied says that the database does not grant this user the permission.
	ErrDenied = fault.New(fault.Denied, "database denies access")
	// ErrUnknownOutcome says that the connection broke during a commit and that the
	// database has not answered since whether the commit happened. It may have.
	ErrUnknownOutcome = fault.Named(fault.Uncertain, "unknown-outcome", "the outcome of the commit is unknown")
	// ErrForeign says that the schema holds the tables of something else.
	ErrForeign = fault.New(fault.Invalid, "not a stet database")
	// ErrNewerFormat says that a later release made the tables.
	ErrNewerFormat = fault.Named(fault.NewerFormat, "newer-database", "database has a newer format")
	// ErrTenant says that a name is not valid for a tenant.
	ErrTenant = fault.New(fault.Invalid, "invalid tenant")
)

// The error codes that we distinguish.
const (
	codeDivision      = "22012" // a range was not empty after its deletion
	codeNull          = "23502" // a row that must be absent was created meanwhile
	codeUnique        = "23505"
	codeReadOnly      = "25006"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeDenied        = "42501"
	codeDiskFull      = "53100"
	codeTooMany       = "53300"
	codeLockTimeout   = "55P03"
	codeCanceled      = "57014"
	codeNoDatabase    = "3D000"
)

// pgCode returns the code of an error that the database sent, or "".
func pgCode(err error) string {
	var sent *pgconn.PgError
	if errors.As(err, &sent) {
		return sent.Code
	}
	return ""
}

// refused reports whether the database has answered that a statement failed, so that
// its transaction is certainly rolled back. After a fatal error, such as a server
// shutdown, that is not certain.
func refused(err error) bool {
	var sent *pgconn.PgError
	if !errors.As(err, &sent) {
		return false
	}
	return sent.SeverityUnlocalized == "ERROR" || sent.SeverityUnlocalized == "" && sent.Severity == "ERROR"
}

// wrap converts an error of the database to one that callers can branch on. It keeps the
// texts of the client library but not its errors, because they carry the connection
// settings with the password.
func (db *DB) wrap(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case db.closed() || errors.Is(err, puddle.ErrClosedPool):
		return blob.ErrClosed
	}
	var sent *pgconn.PgError
	if errors.As(err, &sent) {
		cause := fmt.Errorf("%s (%s)", db.scrub(sent.Message), sent.Code)
		if kind := kindOf(sent.Code); kind != nil {
			return fmt.Errorf("%s: %w: %w", doing, kind, cause)
		}
		return fmt.Errorf("%s: %w", doing, cause)
	}
	return fmt.Errorf("%s: %w: %s", doing, ErrUnavailable, db.scrub(err.Error()))
}

func kindOf(code string) error {
	switch code {
	case codeReadOnly:
		return blob.ErrReadOnly
	case codeDiskFull:
		return blob.ErrFull
	case codeDenied:
		return ErrDenied
	case codeTooMany:
		return ErrNoConnection
	case codeLockTimeout, codeCanceled, codeSerialization, codeDeadlock:
		return kv.ErrBusy
	case codeNoDatabase:
		return ErrUnavailable
	}
	switch code[:min(2, len(code))] {
	case "28":
		return ErrDenied
	case "08", "57":
		return ErrUnavailable
	}
	return nil
}

// scrub removes the password from a text.
func (db *DB) scrub(text string) string {
	for _, secret := range db.secrets {
		text = strings.ReplaceAll(text, secret, "xxxxx")
	}
	return text
}
