package s3api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// NewHTTP returns a client that gives up on a connection without traffic for a while, but
// sets no limit on the total time. Redirects are answers to it: what it sends is signed for
// one host. Roots are nil for those of the system.
func NewHTTP(idle time.Duration, roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, addr)
				if err != nil || idle <= 0 {
					return conn, err
				}
				return &impatientConn{Conn: conn, idle: idle}, nil
			},
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          64,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
			// Compressed answers would change the bytes read.
			DisableCompression: true,
		},
	}
}

// impatientConn is a connection whose reads and writes fail if nothing passes for a while,
// in either direction: who waits for the answer to a large request waits longer than that.
type impatientConn struct {
	net.Conn
	idle time.Duration
}

// Read implements net.Conn.
func (c *impatientConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	return n, c.explain(err)
}

// Write implements net.Conn. A large write goes out in pieces, because each of them is
// traffic.
func (c *impatientConn) Write(p []byte) (written int, err error) {
	const piece = 64 << 10
	for {
		if err := c.SetDeadline(time.Now().Add(c.idle)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(len(p), piece)])
		written, p = written+n, p[n:]
		if err != nil || len(p) == 0 {
			return written, c.explain(err)
		}
	}
}

func (c *impatientConn) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("nothing passed for %s: %w", c.idle, os.ErrDeadlineExceeded)
	}
	return err
}
