package server

import (
	"errors"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/wirecode"
	"github.com/stet-dev/stet/kv"
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

// wireError gives an error its code, and the details that a client branches on. An
// error that a service has already coded stays unchanged.
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
	out := withReasons(connect.NewError(codeOf(err), err), err)
	var conflict *kv.ConflictError
	if errors.As(err, &conflict) && out.Code() == connect.CodeAborted {
		return withDetail(out, &stetv1.RowConflict{Key: []byte(conflict.Key), Want: conflict.Want, Got: conflict.Got})
	}
	return out
}
