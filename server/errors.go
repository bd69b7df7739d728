package server

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/workspace"
)

// codes maps errors to wire codes; the first match counts.
var codes = []struct {
	err  error
	code connect.Code
}{
	{context.Canceled, connect.CodeCanceled},
	{context.DeadlineExceeded, connect.CodeDeadlineExceeded},
	{blob.ErrCorrupt, connect.CodeDataLoss},
	{kv.ErrCorrupt, connect.CodeDataLoss},
	{sqlite.ErrDamaged, connect.CodeDataLoss},
	{conversation.ErrDataLoss, connect.CodeDataLoss},
	{conversation.ErrStale, connect.CodeAborted},
	{kv.ErrConflict, connect.CodeAborted},
	{conversation.ErrExists, connect.CodeAlreadyExists},
	{cloudagent.ErrExists, connect.CodeAlreadyExists},
	{cloudagent.ErrDataLoss, connect.CodeDataLoss},
	{cloudagent.ErrConflict, connect.CodeAborted},
	{cloudagent.ErrInvalid, connect.CodeInvalidArgument},
	{cloudagent.ErrArchived, connect.CodeFailedPrecondition},
	{cloudagent.ErrNewerFormat, connect.CodeFailedPrecondition},
	{cloudagent.ErrTooLarge, connect.CodeResourceExhausted},
	{cloudagent.ErrNotFound, connect.CodeNotFound},
	{checkpoint.ErrInterrupted, connect.CodeUnavailable},
	{checkpoint.ErrRolledBack, connect.CodeAborted},
	{checkpoint.ErrChanged, connect.CodeAborted},
	{checkpoint.ErrBadRecord, connect.CodeDataLoss},
	{workspace.ErrBadNode, connect.CodeDataLoss},
	{checkpoint.ErrStalePlan, connect.CodeFailedPrecondition},
	{checkpoint.ErrConflict, connect.CodeFailedPrecondition},
	{checkpoint.ErrDisabled, connect.CodeFailedPrecondition},
	{checkpoint.ErrNothing, connect.CodeFailedPrecondition},
	{checkpoint.ErrInPlace, connect.CodeFailedPrecondition},
	{checkpoint.ErrNoConversations, connect.CodeFailedPrecondition},
	{checkpoint.ErrNewerFormat, connect.CodeFailedPrecondition},
	{checkpoint.ErrBusy, connect.CodeUnavailable},
	{checkpoint.ErrBadRef, connect.CodeInvalidArgument},
	{checkpoint.ErrAmbiguous, connect.CodeInvalidArgument},
	{checkpoint.ErrOtherWorkspace, connect.CodeInvalidArgument},
	{workspace.ErrBadPath, connect.CodeInvalidArgument},
	{workspace.ErrRootRefused, connect.CodeInvalidArgument},
	{checkpoint.ErrNotFound, connect.CodeNotFound},
	{blob.ErrInvalidID, connect.CodeInvalidArgument},
	{blob.ErrMismatch, connect.CodeInvalidArgument},
	{kv.ErrInvalidKey, connect.CodeInvalidArgument},
	{kv.ErrInvalidBatch, connect.CodeInvalidArgument},
	{conversation.ErrInvalid, connect.CodeInvalidArgument},
	{blob.ErrWrongKey, connect.CodeFailedPrecondition},
	{keyring.ErrWrongKey, connect.CodeFailedPrecondition},
	{sqlite.ErrNewerFormat, connect.CodeFailedPrecondition},
	{blob.ErrReadOnly, connect.CodeFailedPrecondition},
	{blob.ErrTooLarge, connect.CodeResourceExhausted},
	{kv.ErrTooLarge, connect.CodeResourceExhausted},
	{blob.ErrFull, connect.CodeResourceExhausted},
	{kv.ErrBusy, connect.CodeUnavailable},
	{kv.ErrUncertain, connect.CodeUnknown},
	{blob.ErrClosed, connect.CodeUnavailable},
	{upkeep.ErrNoInventory, connect.CodeUnimplemented},
	{conversation.ErrNotFound, connect.CodeNotFound},
	{blob.ErrNotFound, connect.CodeNotFound},
	{kv.ErrNotFound, connect.CodeNotFound},
}

// reasonHeader names an error that its code alone does not identify. It comes as a
// header or, after a stream or with gRPC, as a trailer.
const reasonHeader = "Stet-Error"

// reasons are its values; the first match counts. Clients have the same list.
var reasons = []struct {
	err  error
	name string
}{
	{blob.ErrFull, "full"},
	{blob.ErrTooLarge, "blob-too-large"},
	{kv.ErrTooLarge, "row-too-large"},
	{cloudagent.ErrTooLarge, "update-too-large"},
	{blob.ErrReadOnly, "read-only"},
	{kv.ErrUncertain, "uncertain"},
	{blob.ErrWrongKey, "wrong-key"},
	{blob.ErrMismatch, "mismatch"},
	{blob.ErrInvalidID, "invalid-id"},
	{kv.ErrInvalidKey, "invalid-key"},
	{kv.ErrInvalidBatch, "invalid-batch"},
	{kv.ErrCorrupt, "corrupt-row"},
	{cloudagent.ErrArchived, "archived"},
	{cloudagent.ErrNewerFormat, "newer-format"},
}

// withReason adds the header.
func withReason(out *connect.Error, err error) *connect.Error {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			out.Meta().Set(reasonHeader, r.name)
			break
		}
	}
	return out
}

// backendError is wireError, but the backend's codes take precedence for its own
// errors. Codes set by a service stay.
func backendError(err error, known func(error) connect.Code) error {
	var said *connect.Error
	if err == nil || known == nil || errors.As(err, &said) {
		return wireError(err)
	}
	if code := known(err); code != 0 {
		return connect.NewError(code, err)
	}
	return wireError(err)
}

// wireError adds the code of an error and the details that clients branch on.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	var known *connect.Error
	if errors.As(err, &known) {
		return err
	}
	var missing *kv.MissingBlobsError
	if errors.As(err, &missing) {
		out := connect.NewError(connect.CodeFailedPrecondition, err)
		detail := &stetv1.MissingBlobs{}
		for _, id := range missing.IDs {
			detail.Ids = append(detail.Ids, id.Bytes())
		}
		return withDetail(out, detail)
	}
	var conflict *kv.ConflictError
	if errors.As(err, &conflict) {
		out := connect.NewError(connect.CodeAborted, err)
		return withDetail(out, &stetv1.RowConflict{Key: []byte(conflict.Key), Want: conflict.Want, Got: conflict.Got})
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return withReason(connect.NewError(c.code, err), err)
		}
	}
	return connect.NewError(connect.CodeInternal, err)
}
