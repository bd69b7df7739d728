package server

import (
	"errors"
	"maps"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/wirecode"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server/internal/wire"
)

// exceptions are reasons whose code is not that of their class.
var exceptions = map[string]connect.Code{
	"checkpoints-disabled": connect.CodeFailedPrecondition, // a setting can change that
	"nothing-to-undo":      connect.CodeFailedPrecondition, // nothing was looked up by name
	"other-workspace":      connect.CodeInvalidArgument,    // the caller named both
	"rewind-interrupted":   connect.CodeUnavailable,        // the next call opens the workspace again, which ends the rewind
}

// codeOf returns the code of an error. An error without a reason is not meant for
// callers, and is internal.
func codeOf(err error) connect.Code {
	if code, ok := wirecode.Ended(err); ok {
		return code
	}
	reasons := fault.Reasons(err)
	if len(reasons) == 0 {
		return connect.CodeInternal
	}
	if code, ok := exceptions[reasons[0]]; ok {
		return code
	}
	return wirecode.Of(fault.Declared(err))
}

// withReasons adds the headers for err.
func withReasons(out *connect.Error, err error) *connect.Error {
	wirecode.Name(out.Meta(), err)
	return out
}

// maxText limits the text of an error, which may repeat an argument. With gRPC it is sent
// as a trailer, and some clients accept no more than 8 KiB of those.
const maxText = 2 << 10

// wireError gives an error its code, and the details that a client branches on. An
// error that a service has already coded stays unchanged, but for a long text.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	coded := withCode(err)
	var long *connect.Error
	if !errors.As(coded, &long) || len(long.Message()) <= maxText {
		return coded
	}
	text := wire.Valid(long.Message()[:maxText])
	out := connect.NewError(long.Code(), wire.Error(coded, "%s… (the first %d of %d bytes)", text, maxText, len(long.Message())))
	maps.Copy(out.Meta(), long.Meta())
	for _, detail := range long.Details() {
		out.AddDetail(detail)
	}
	return out
}

// withCode is wireError for a text of any length.
func withCode(err error) error {
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
	out := withReasons(connect.NewError(codeOf(err), err), err)
	var conflict *kv.ConflictError
	if errors.As(err, &conflict) && out.Code() == connect.CodeAborted {
		return withDetail(out, &stetv1.RowConflict{Key: []byte(conflict.Key), Want: conflict.Want, Got: conflict.Got})
	}
	return out
}
