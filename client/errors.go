package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// ErrUnreachable says that the server did not answer.
var ErrUnreachable = errors.New("the server cannot be reached")

// reasonHeader names an error of the server that its code alone does not identify.
// Old servers do not send it.
const reasonHeader = "Stet-Error"

// reasons maps its values to errors.
var reasons = map[string]error{
	"full": blob.ErrFull, "blob-too-large": blob.ErrTooLarge, "row-too-large": kv.ErrTooLarge, "update-too-large": cloudagent.ErrTooLarge,
	"read-only": blob.ErrReadOnly, "wrong-key": blob.ErrWrongKey, "mismatch": blob.ErrMismatch, "invalid-id": blob.ErrInvalidID,
	"invalid-key": kv.ErrInvalidKey, "invalid-batch": kv.ErrInvalidBatch, "corrupt-row": kv.ErrCorrupt, "uncertain": kv.ErrUncertain,
	"archived": cloudagent.ErrArchived, "newer-format": cloudagent.ErrNewerFormat,
}

// namedError is an error of the server with a known name. It also unwraps to the wire
// error, for its code.
type namedError struct {
	kind error
	wire *connect.Error
}

func (e *namedError) Error() string {
	if strings.Contains(e.wire.Message(), e.kind.Error()) {
		return e.wire.Message()
	}
	return e.kind.Error() + ": " + e.wire.Message()
}

func (e *namedError) Unwrap() []error { return []error{e.kind, e.wire} }

// reasonOf returns the error that the server named, or nil.
func reasonOf(wire *connect.Error) error {
	kind := reasons[wire.Meta().Get(reasonHeader)]
	if kind == nil || !connect.IsWireError(wire) {
		return nil
	}
	return &namedError{kind: kind, wire: wire}
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
	if named := reasonOf(wire); named != nil {
		return named
	}
	if !connect.IsWireError(err) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	kinds := map[connect.Code]error{
		connect.CodeNotFound: notFound, connect.CodeDataLoss: blob.ErrCorrupt, connect.CodeAborted: kv.ErrConflict,
		connect.CodeUnavailable: kv.ErrBusy,
	}
	if kind := kinds[wire.Code()]; kind != nil {
		return fmt.Errorf("%w: %s", kind, wire.Message())
	}
	return err
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
