package postgres

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// mishap is what a proxy does to the transaction that holds a marker.
type mishap int

const (
	loseRequest mishap = iota // it never arrives
	loseAnswer                // it is done, and nobody is told
	lateRequest               // it arrives long after its client has gone
)

// proxy stands between a node and its database.
type proxy struct {
	t      *testing.T
	addr   string // of the database
	listen net.Listener

	mu     sync.Mutex // guards the fields below
	marker []byte     // nil: no fault is due
	fault  mishap
	late   func() []byte // sends the late request, and returns the answer
	hit    chan struct{}
}

func newProxy(t *testing.T, addr string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, addr: addr, listen: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// dsn leads to the same database through the proxy.
func (p *proxy) dsn(dsn string) string {
	return strings.Replace(dsn, p.addr, p.listen.Addr().String(), 1)
}

// arm has the next transaction that holds the marker meet the fault.
func (p *proxy) arm(f mishap, marker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker, p.fault, p.hit = []byte(marker), f, make(chan struct{})
}

// due reports the fault for these bytes, once.
func (p *proxy) due(sent []byte) (mishap, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.marker == nil || !bytes.Contains(sent, p.marker) {
		return 0, false
	}
	p.marker = nil
	close(p.hit)
	return p.fault, true
}

var (
	syncMessage   = []byte{'S', 0, 0, 0, 4}
	readyMessage  = []byte{'Z', 0, 0, 0, 5}
	cancelMessage = []byte{0, 0, 0, 16, 4, 0xd2, 0x16, 0x2e}
)

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.addr)
	if err != nil {
		return
	}
	answers := &answers{to: client, ready: make(chan struct{})}
	go func() {
		defer client.Close()
		io.Copy(answers, server)
		answers.end()
	}()
	chunk, held := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := client.Read(chunk)
		if err != nil {
			server.Close()
			return
		}
		held = append(held, chunk[:n]...)
		if bytes.HasPrefix(held, cancelMessage) {
			// A client whose connection was cut asks the database over another one
			// to stop. That is lost too: else it may meet the late request.
			server.Close()
			return
		}
		if p.marked(held) && !bytes.HasSuffix(held, syncMessage) {
			continue // whole transactions only
		}
		if f, ok := p.due(held); ok {
			p.fail(f, client, server, answers, held)
			return
		}
		if _, err := server.Write(held); err != nil {
			return
		}
		held = nil
	}
}

func (p *proxy) marked(sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marker != nil && bytes.Contains(sent, p.marker)
}

func (p *proxy) fail(f mishap, client, server net.Conn, a *answers, request []byte) {
	a.mute()
	switch f {
	case loseRequest:
		server.Close()
	case loseAnswer:
		server.Write(request)
		<-a.ready
		server.Close()
	case lateRequest:
		p.mu.Lock()
		p.late = func() []byte {
			server.Write(request)
			<-a.ready
			server.Close()
			return a.text()
		}
		p.mu.Unlock()
	}
	client.Close()
}

// answers forwards what the database says, until it is muted and only listens.
type answers struct {
	to    io.Writer
	ready chan struct{} // closed when a muted answer is complete

	mu    sync.Mutex // guards the fields below
	muted bool
	heard []byte
	ended bool
}

func (a *answers) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.muted {
		return a.to.Write(b)
	}
	a.heard = append(a.heard, b...)
	if bytes.Contains(a.heard, readyMessage) {
		a.endLocked()
	}
	return len(b), nil
}

func (a *answers) mute() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.muted = true
}

func (a *answers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endLocked()
}

func (a *answers) endLocked() {
	if !a.ended {
		a.ended = true
		close(a.ready)
	}
}

func (a *answers) text() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard
}
