package scenario

import (
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between clients and a server, and treats every connection badly in
// its own way: it passes on small or large pieces, waits before each, and cuts
// the connection without a word after some thousand bytes.
type proxy struct {
	address  string
	target   string
	least    int64 // bytes that pass before a cut, up to five times as many
	listener net.Listener
	work     sync.WaitGroup
	cuts     atomic.Int64

	mu     sync.Mutex // guards what follows
	conns  map[net.Conn]struct{}
	closed bool
}

func newProxy(t testing.TB, address string, least int64) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		address: "http://" + listener.Addr().String(), target: strings.TrimPrefix(address, "http://"),
		least: least, listener: listener, conns: make(map[net.Conn]struct{}),
	}
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

// add reports whether the proxy still runs.
func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return !p.closed
}

func (p *proxy) drop(conns ...net.Conn) {
	for _, c := range conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			near.Close()
			continue
		}
		if !p.add(near, far) {
			p.drop(near, far)
			return
		}
		left := new(atomic.Int64)
		left.Store(p.least + rand.Int64N(4*p.least))
		piece := []int{512, 4 << 10, 64 << 10}[rand.IntN(3)]
		delay := []time.Duration{0, 0, time.Millisecond, 3 * time.Millisecond}[rand.IntN(4)]
		p.work.Go(func() { p.pass(near, far, left, piece, delay) })
		p.work.Go(func() { p.pass(far, near, left, piece, delay) })
	}
}

// pass passes bytes on; the end of one direction is the end of both.
func (p *proxy) pass(from, to net.Conn, left *atomic.Int64, piece int, delay time.Duration) {
	defer p.drop(from, to)
	buf := make([]byte, piece)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			time.Sleep(delay)
			if left.Add(-int64(n)) < 0 {
				p.cuts.Add(1)
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
