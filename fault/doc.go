// Package fault sorts errors into classes.
//
// Every package of this module names the failures that its callers branch on with
// a sentinel, such as blob.ErrNotFound. A sentinel belongs to one [Class], which
// says what the failure means to a caller and whether another attempt can help:
//
//	var (
//		ErrNotFound = fault.Named(fault.NotFound, "blob-not-found", "blob not found")
//		ErrClosed   = fault.New(fault.Closed, "store is closed")
//	)
//
// errors.Is works on each sentinel as usual. [Of] returns the class of an error however
// it is wrapped, so that a caller can decide without a list of packages:
//
//	switch fault.Of(err) {
//	case fault.Busy, fault.Unreachable: // try again later
//	case fault.Stale: // read again, then try again
//	}
//
// A server and a command line need one row for each class, not one for each sentinel. The
// table of wire codes is in internal/wirecode, the table of exit codes is in the command
// line; this package depends on neither.
//
// # Reasons
//
// A code on the wire says less than a sentinel. A sentinel that must be recognised on the
// other side has a reason, a stable name made with [Named] or [Under]. Two sentinels with
// the same reason are the same to errors.Is. A client therefore needs no table: it makes
// a sentinel from the reason that the server sent. Reasons are unique within this module
// and never change once released.
//
// # Which class counts
//
// An error can hold several classes: a rewind that was rolled back because a blob is
// damaged holds two. The most serious one counts. The constants are in order from the
// least serious to the most serious. Damaged comes last, because a caller that treats
// damage as "not found" loses data.
package fault
