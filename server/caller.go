package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/access"
)

// call is the state of a running request. It is created first and filled in later;
// one goroutine at a time uses it.
type call struct {
	request string // an id, for logs and for reports of a failure
	access.Principal
	meter     *access.Meter // nil without limits
	memory    *allowance    // nil without a limit
	where     *places       // allowed places of workspaces; nil for none
	procedure string
	code      string // of the error that it ended with
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a context, or an empty one outside of requests.
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

// onThisMachine reports whether a call came over a loopback address.
func onThisMachine(ctx context.Context) bool {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return false
	}
	addr := call.Peer().Addr
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
