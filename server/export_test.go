package server

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/stet-dev/stet/internal/highlight"
)

func init() { highlight.Patient(time.Hour) } // tests wait for colours

// NewMemory, and what it gives, are the memory of a server for its tests.
func NewMemory(total int64) *memory { return newMemory(total) }

// Call returns the allowance of a call.
func (m *memory) Call() *allowance { return &allowance{memory: m} }

func (a *allowance) Grow(ctx context.Context, n int64) error { return a.grow(ctx, n) }
func (a *allowance) Shrink(n int64)                          { a.shrink(n) }
func (a *allowance) End()                                    { a.end() }

// ServeStrictly is Serve with other limits for strangers.
func ServeStrictly(ctx context.Context, listener net.Listener, handler http.Handler, deadline time.Duration, connections int) error {
	srv := newHTTPServer(handler)
	srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout = deadline, deadline, deadline
	return serveBy(ctx, srv, newDoor(listener, connections))
}

// WithDrain attaches the context that ends when the server begins to stop.
var WithDrain = withDrain

// Procedures returns the paths of all calls.
func Procedures() []string { return slices.Sorted(maps.Keys(procedures(services))) }

// UpToDate is what a search does first.
var UpToDate = upToDate
