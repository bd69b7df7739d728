package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// door is a listener that limits the open connections of an address without a valid
// token. Further ones are closed at once.
type door struct {
	net.Listener
	max int

	mu   sync.Mutex // guards open
	open map[string]int
}

func newDoor(listener net.Listener, max int) *door {
	return &door{Listener: listener, max: max, open: make(map[string]int)}
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := d.enter(conn); g != nil {
			return g, nil
		}
		conn.Close()
	}
}

func (d *door) enter(conn net.Conn) *guest {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		host = conn.RemoteAddr().String()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[host] >= d.max {
		return nil
	}
	d.open[host]++
	g := &guest{Conn: conn}
	g.known = sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.open[host]--; d.open[host] == 0 {
			delete(d.open, host)
		}
	})
	return g
}

// guest is a connection accepted by a door.
type guest struct {
	net.Conn
	known func() // stops counting it: a valid token arrived, or it is closed
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.known()
	return g.Conn.Close()
}

type guestKey struct{}

// withGuest is http.Server.ConnContext.
func withGuest(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if g, ok := conn.(*guest); ok {
		return context.WithValue(ctx, guestKey{}, g)
	}
	return ctx
}

// patient removes the deadlines of strangers from a request with a valid token.
// Stalled peers are still closed: see unstalled.
func patient(w http.ResponseWriter, r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.known()
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // other servers may not support it
	_ = control.SetWriteDeadline(time.Time{})
}
