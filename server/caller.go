package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/stet-dev/stet/access"
)

// call is what is known of a request under way. It is made before anything else
// is done and filled in on the way; one goroutine at a time uses it.
type call struct {
	request string // an id, for logs and for people who ask about a failure
	access.Principal
	meter     *access.Meter // nil without limits
	memory    *allowance    // nil without
	where     *places       // in which workspaces may lie; nil for none
	procedure string
	code      string // of the error that it ended with
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a context; an empty one outside of requests.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

func newRequestID() string {
	var raw [8]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}
