package stream

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that there is no such stream, or that it has expired.
	ErrNotFound = fault.Named(fault.NotFound, "stream-not-found", "stream not found")
	// ErrGone says that the stream was deleted or has expired, and is kept only for its
	// forks. Its path cannot be reused before they are deleted.
	ErrGone = fault.Named(fault.NotFound, "stream-gone", "stream was deleted and is kept for its forks")
	// ErrExists says that a stream with another configuration exists under the path.
	ErrExists = fault.Named(fault.Exists, "stream-exists", "stream exists with another configuration")
	// ErrInvalid says that an argument is invalid. Nothing was changed.
	ErrInvalid = fault.Named(fault.Invalid, "invalid-stream", "invalid")
	// ErrInvalidOffset says that a text is not an offset, or not a place in the stream.
	// It wraps ErrInvalid.
	ErrInvalidOffset = fault.Under(ErrInvalid, "invalid-stream-offset", "invalid offset")
	// ErrClosed says that the stream is closed and accepts no more appends. The error is
	// a *ClosedError.
	ErrClosed = fault.Named(fault.Conflict, "stream-closed", "stream is closed")
	// ErrContentType says that the content type of an append or fork is not that of the
	// stream.
	ErrContentType = fault.Named(fault.Conflict, "stream-content-type", "content type does not match the stream")
	// ErrSeq says that the Seq of an append is not greater than the last one.
	ErrSeq = fault.Named(fault.Stale, "stream-seq", "sequence is not greater than the last one")
	// ErrFenced says that a newer epoch of the producer has begun. The error is a
	// *ProducerError.
	ErrFenced = fault.Named(fault.Stale, "producer-fenced", "producer has a newer epoch")
	// ErrGap says that appends of the producer before this one are missing. The error
	// is a *ProducerError.
	ErrGap = fault.Named(fault.Conflict, "producer-gap", "appends of the producer are missing")
	// ErrTooLarge says that an append is larger than MaxAppend.
	ErrTooLarge = fault.Named(fault.Exhausted, "append-too-large", "append too large")
	// ErrDataLoss says that an acknowledged append can no longer be read.
	ErrDataLoss = fault.Named(fault.Damaged, "stream-data-loss", "data loss")
	// ErrNewerFormat says that a row was written by a newer release.
	ErrNewerFormat = kv.ErrNewerFormat
)

// ClosedError says where a closed stream ends. It wraps ErrClosed.
type ClosedError struct{ Tail Offset }

func (e *ClosedError) Error() string { return fmt.Sprintf("%v at %s", ErrClosed, e.Tail) }

// Unwrap returns ErrClosed.
func (e *ClosedError) Unwrap() error { return ErrClosed }

// ProducerError has the state of a producer in the stream. It wraps ErrFenced or
// ErrGap.
type ProducerError struct {
	// Epoch is the current epoch of the producer; ReceivedEpoch is that of the append.
	Epoch, ReceivedEpoch uint64
	// Expected is the number of its next append; Received is the one that came.
	Expected, Received uint64
	reason             error
}

func (e *ProducerError) Error() string {
	if e.reason == ErrFenced {
		return fmt.Sprintf("%v: its current epoch is %d and this append has epoch %d, so another writer has taken over; "+
			"stop writing, or take over again with a greater epoch, from append 0 on", e.reason, e.Epoch, e.ReceivedEpoch)
	}
	return fmt.Sprintf("%v: epoch %d expects append %d, append %d came; send append %d first", e.reason, e.Epoch, e.Expected, e.Received, e.Expected)
}

// Unwrap returns ErrFenced or ErrGap.
func (e *ProducerError) Unwrap() error { return e.reason }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
