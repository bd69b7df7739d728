package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// graceTime is how long calls may continue when the server stops, and endTime how
// long they have after that to inform their clients.
const (
	graceTime = 8 * time.Second
	endTime   = 2 * time.Second
)

// headTime limits the head of a request, and strangerTime all of it before the token
// is verified. They are deadlines of the connection, which apply whether a handler
// reads or not. See patient.
const (
	headTime     = 10 * time.Second
	strangerTime = 20 * time.Second
)

// strangers is how many connections without a valid token may be open from one
// address.
const strangers = 256

// Serve answers on a listener until ctx is done, then lets running calls finish for a
// while. HTTP/2 also works without TLS, because streams need it.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return serve(ctx, newDoor(listener, strangers), handler)
}

// ServeTLS is Serve with a certificate.
func ServeTLS(ctx context.Context, listener net.Listener, handler http.Handler, cert *Certificate) error {
	config := cert.config()
	config.NextProtos = []string{"h2", "http/1.1"}
	return serve(ctx, tls.NewListener(newDoor(listener, strangers), config), handler)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return serveBy(ctx, newHTTPServer(handler), listener)
}

func serveBy(ctx context.Context, srv *http.Server, listener net.Listener) error {
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer endCalls()
	srv.ConnContext = withGuest
	srv.BaseContext = func(net.Listener) context.Context { return withDrain(calls, ctx) }
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Endless streams end now through ctx; other calls have until then.
	late := time.AfterFunc(graceTime, endCalls)
	defer late.Stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime+endTime)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		return errors.Join(err, srv.Close())
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newHTTPServer(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: headTime,
		ReadTimeout:       strangerTime,
		WriteTimeout:      2 * strangerTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250, // per connection; clients open another one
			SendPingTimeout:      30 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     stallTime,
		},
	}
}
