package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/server"
)

// strict serves with short deadlines and few connections for strangers.
func strict(t *testing.T, deadline time.Duration, connections int) (address string) {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	handler, err := server.New(db, &server.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeStrictly(ctx, listener, handler, deadline, connections) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return listener.Addr().String()
}

// open opens a connection that fails the test if the server holds it.
func open(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// The server closes connections on which strangers let it wait.
func TestStrangersAreNotWaitedFor(t *testing.T) {
	address := strict(t, 100*time.Millisecond, 100)
	for name, head := range map[string]string{
		"health without a body":    "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
		"a call without a body":    "POST /stet.v1.StoreService/Info HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
		"a stream without a token": "POST /stet.v1.BlobService/PutStream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\nTransfer-Encoding: chunked\r\n\r\n",
		"half a head":              "POST / HTTP/1.1\r\nHost: loc",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := open(t, address)
			if _, err := io.WriteString(conn, head); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
				t.Errorf("the server still waits: %v", err)
			}
		})
	}
	t.Run("health byte by byte", func(t *testing.T) {
		t.Parallel()
		conn := open(t, address)
		fmt.Fprintf(conn, "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
		closed := make(chan error, 1)
		go func() { _, err := io.Copy(io.Discard, conn); closed <- err }()
		for {
			select {
			case err := <-closed:
				if isTimeout(err) {
					t.Errorf("the server still waits: %v", err)
				}
				return
			case <-time.After(10 * time.Millisecond): // as a slow client does
				_, _ = io.WriteString(conn, "a")
			}
		}
	})
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

// An address has a few connections without a token; those with one do not count.
func TestConnectionsOfStrangersAreLimited(t *testing.T) {
	address := strict(t, time.Hour, 2)
	ask := func(conn net.Conn, token string) (status int, err error) {
		fmt.Fprintf(conn, "POST /stet.v1.StoreService/Info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", token)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, err
	}
	first, second := open(t, address), open(t, address)
	for _, conn := range []net.Conn{first, second} { // they are accepted, and unknown
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("health: %v", err)
		} else if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.Copy(io.Discard, open(t, address)); isTimeout(err) {
		t.Errorf("a third connection of a stranger stays open: %v", err)
	}
	if status, err := ask(first, token); status != http.StatusOK || err != nil {
		t.Fatalf("a call with the token: %d, %v", status, err)
	}
	if status, err := ask(open(t, address), strings.Repeat("x", 20)); status != http.StatusUnauthorized || err != nil {
		t.Errorf("when one of them has shown a token: %d, %v", status, err)
	}
}
