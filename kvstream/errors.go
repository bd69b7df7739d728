package kvstream

import (
	"context"
	"errors"
	"strconv"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// Errors of this package, in addition to those of package blob.
var (
	// ErrNoAnswer says that the peer did not answer in time. It is unknown whether it
	// carried out the request.
	ErrNoAnswer = fault.New(fault.Uncertain, "peer did not answer in time")
	// ErrUnexpectedAnswer says that the answer does not match the request, for example a
	// get answered with the result of a successful set.
	ErrUnexpectedAnswer = fault.New(fault.Invalid, "answer does not match the request")
	// ErrUnknownRequest says that this release does not know the kind of the peer's
	// request.
	ErrUnknownRequest = fault.New(fault.Unsupported, "unknown kind of request")
)

// PeerError is the failure of a request as reported by the peer.
type PeerError struct {
	// Message is the peer's text, shortened for logs.
	Message string
	cause   error
}

const maxPeerText = 300

func newPeerError(text string) *PeerError {
	if len(text) > maxPeerText {
		text = text[:maxPeerText] + "…"
	}
	return &PeerError{Message: text, cause: causeOf(text)}
}

func (e *PeerError) Error() string { return "peer refused: " + strconv.Quote(e.Message) }

// Unwrap returns the matching error of package blob, or nil.
func (e *PeerError) Unwrap() error { return e.cause }

// The texts sent for errors; the message has no other field. The peer gets nothing
// else, because the error of a store may name paths and hosts.
const (
	textTimeout   = "the store did not finish in time"
	textCancelled = "the request was cancelled"
	textOther     = "the store failed"
)

// spoken are the errors whose own text is sent.
var spoken = []error{
	blob.ErrInvalidID, blob.ErrMismatch, blob.ErrTooLarge, blob.ErrReadOnly, blob.ErrFull,
	blob.ErrClosed, blob.ErrWrongKey, blob.ErrCorrupt, blob.ErrNotFound, ErrUnknownRequest,
}

// textOf returns the text sent for err.
func textOf(err error) string {
	for _, known := range spoken {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return textTimeout
	case errors.Is(err, context.Canceled):
		return textCancelled
	}
	return textOther
}

// causeOf is the inverse of textOf, for texts about the blob or the store; other
// peers use other texts.
func causeOf(text string) error {
	for _, known := range spoken {
		if text == known.Error() {
			return known
		}
	}
	return nil
}
