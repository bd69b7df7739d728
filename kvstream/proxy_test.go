package kvstream_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between two ends of TCP connections and makes them worse.
type proxy struct {
	addr     string
	target   string
	delay    time.Duration // before each piece
	piece    int           // bytes at a time
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns []net.Conn
	left  int64 // bytes until everything is cut; negative: never
}

func newProxy(t testing.TB, target string, delay time.Duration, piece int) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{addr: listener.Addr().String(), target: target, delay: delay, piece: piece, listener: listener, left: -1}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		must(t, listener.Close())
		p.cut()
		p.work.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		p.work.Go(func() { p.copy(near, far) })
		p.work.Go(func() { p.copy(far, near) })
	}
}

// copy passes bytes on, in pieces; the end of one direction is the end of both.
func (p *proxy) copy(from, to net.Conn) {
	buf := make([]byte, p.piece)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			time.Sleep(p.delay)
			if !p.pay(n) {
				p.cut()
				return
			}
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = errors.Join(err, werr)
			}
		}
		if err != nil {
			_ = from.Close()
			_ = to.Close()
			return
		}
	}
}

func (p *proxy) pay(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left < 0 {
		return true
	}
	p.left = max(0, p.left-int64(n))
	return p.left > 0
}

// cutAfter makes the proxy drop all connections when n more bytes have passed.
func (p *proxy) cutAfter(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

// cut drops all connections, as a network does: without a word.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	p.conns = nil
}

func TestProxyPassesBytesOnAndCuts(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		conn, err := echo.Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	})
	defer work.Wait()
	defer echo.Close()
	p := newProxy(t, echo.Addr().String(), time.Microsecond, 3)
	conn, err := net.Dial("tcp", p.addr)
	must(t, err)
	defer conn.Close()
	for range 2 {
		_, err = conn.Write([]byte("hello proxy"))
		must(t, err)
		got := make([]byte, 11)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello proxy" {
			t.Fatalf("echo: got %q, %v", got, err)
		}
	}
	p.cut()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read after the cut: got %d bytes", n)
	}
}
