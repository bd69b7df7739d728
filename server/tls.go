package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Certificate is a certificate and its key in files. It is read again when one of
// them has changed, so that renewing it needs no restart. It is safe for concurrent
// use.
type Certificate struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu      sync.Mutex // guards what follows
	stamp   [2]stamp
	current *tls.Certificate
}

// stamp shows whether a file has changed.
type stamp struct {
	time time.Time
	size int64
}

// LoadCertificate reads a certificate. If it cannot be read again later, the old one
// stays in use and logger, if not nil, gets the error.
func LoadCertificate(certFile, keyFile string, logger *slog.Logger) (*Certificate, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c := &Certificate{certFile: certFile, keyFile: keyFile, logger: logger}
	if _, err := c.get(); err != nil {
		return nil, err
	}
	return c, nil
}

// get returns the current certificate.
func (c *Certificate) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := stamps(c.certFile, c.keyFile)
	if err == nil && c.current != nil && now == c.stamp {
		return c.current, nil
	}
	var fresh tls.Certificate
	if err == nil {
		fresh, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	if err != nil {
		err = fmt.Errorf("load certificate: %w", err)
		if c.current == nil {
			return nil, err
		}
		// Perhaps only one of the two files has been replaced so far.
		c.logger.Error("certificate", slog.Any("error", err))
		return c.current, nil
	}
	c.current, c.stamp = &fresh, now
	return c.current, nil
}

func stamps(files ...string) (out [2]stamp, err error) {
	for i, path := range files {
		info, statErr := os.Stat(path)
		if statErr != nil {
			err = errors.Join(err, statErr)
			continue
		}
		out[i] = stamp{info.ModTime(), info.Size()}
	}
	return out, err
}

// Hosts returns the names of the certificate.
func (c *Certificate) Hosts() []string {
	cert, err := c.get()
	if err != nil || cert.Leaf == nil {
		return nil
	}
	hosts := append([]string(nil), cert.Leaf.DNSNames...)
	for _, ip := range cert.Leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get() },
	}
}
