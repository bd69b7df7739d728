package client

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// ErrUnreachable says that the server did not answer.
var ErrUnreachable = errors.New("the server cannot be reached")

// localError gives an error of the server the type that it had there. notFound is
// what NOT_FOUND means for the call.
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
