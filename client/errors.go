package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// ErrUnreachable says that the server did not answer.
var ErrUnreachable = fault.New(fault.Unreachable, "the server cannot be reached")

// Headers by which a server names an error. Servers before them send only a code.
const (
	reasonHeader = "Stet-Error"
	classHeader  = "Stet-Error-Class"
)

// classes maps a code to a class if the server does not name one, as with an old
// server or a proxy. UNKNOWN is missing: it has too many causes.
var classes = map[connect.Code]fault.Class{
	connect.CodeCanceled: fault.Canceled, connect.CodeDeadlineExceeded: fault.Canceled, connect.CodeInvalidArgument: fault.Invalid,
	connect.CodeNotFound: fault.NotFound, connect.CodeAlreadyExists: fault.Exists, connect.CodePermissionDenied: fault.Denied,
	connect.CodeUnauthenticated: fault.Denied, connect.CodeResourceExhausted: fault.Exhausted, connect.CodeFailedPrecondition: fault.Conflict,
	connect.CodeAborted: fault.Stale, connect.CodeUnimplemented: fault.Unsupported, connect.CodeUnavailable: fault.Busy, connect.CodeDataLoss: fault.Damaged,
}

// remoteError is an error of the server. To errors.Is it is each error that the
// server named; it is also the error of the wire, for callers that need its code.
type remoteError struct {
	class fault.Class
	kinds []error
	wire  *connect.Error
}

func (e *remoteError) Error() string {
	if len(e.kinds) == 0 || e.kinds[0].Error() == "" || strings.Contains(e.wire.Message(), e.kinds[0].Error()) {
		return e.wire.Message()
	}
	return e.kinds[0].Error() + ": " + e.wire.Message()
}

// FaultClass returns the class that the server named, or that of the code.
func (e *remoteError) FaultClass() fault.Class { return e.class }

func (e *remoteError) Unwrap() []error { return append(slices.Clone(e.kinds), e.wire) }

// remote turns an error of the wire back into the error that it was at the server. To
// errors.Is, a reason equals the sentinel that has it. If the server named no reason,
// byCode maps its code.
func remote(wire *connect.Error, byCode map[connect.Code]error) *remoteError {
	e := &remoteError{class: fault.Parse(wire.Meta().Get(classHeader)), wire: wire}
	if e.class == fault.Unknown {
		e.class = classes[wire.Code()]
	}
	for _, reason := range reasonsOf(wire) {
		e.kinds = append(e.kinds, fault.Named(e.class, reason, ""))
	}
	if kind := byCode[wire.Code()]; kind != nil && len(e.kinds) == 0 {
		e.kinds = append(e.kinds, kind)
	}
	return e
}

// reasonsOf returns the reasons that a server sent. A proxy may have joined the lines
// of the header.
func reasonsOf(wire *connect.Error) []string {
	var reasons []string
	for _, line := range wire.Meta().Values(reasonHeader) {
		for reason := range strings.SplitSeq(line, ",") {
			if reason = strings.TrimSpace(reason); reason != "" {
				reasons = append(reasons, reason)
			}
		}
	}
	return reasons
}

// localError converts an error of the server to its local equivalent. notFound is the
// meaning of NOT_FOUND for the call.
func localError(ctx context.Context, err error, notFound error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wire *connect.Error
	if !errors.As(err, &wire) {
		return err
	}
	for _, detail := range wire.Details() {
		value, decodeErr := detail.Value()
		if decodeErr != nil {
			continue
		}
		switch d := value.(type) {
		case *stetv1.RowConflict:
			return &kv.ConflictError{Key: string(d.GetKey()), Want: d.GetWant(), Got: d.GetGot()}
		case *stetv1.MissingBlobs:
			return missingBlobs(d)
		}
	}
	if !connect.IsWireError(err) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	e := remote(wire, map[connect.Code]error{
		connect.CodeNotFound: notFound, connect.CodeDataLoss: blob.ErrCorrupt, connect.CodeAborted: kv.ErrConflict,
	})
	if wire.Code() == connect.CodeUnavailable { // whatever the reason: nothing was done, and it may work later
		e.kinds = append(e.kinds, kv.ErrBusy)
	}
	return e
}

func missingBlobs(d *stetv1.MissingBlobs) error {
	missing := &kv.MissingBlobsError{}
	for _, raw := range d.GetIds() {
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return err
		}
		missing.IDs = append(missing.IDs, id)
	}
	return missing
}
