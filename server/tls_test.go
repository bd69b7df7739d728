package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/server"
)

// issue writes a certificate for a name and its key to two files.
func issue(t *testing.T, dir, name string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, "*.wild.example"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		// A coarse clock must not hide that it is another file.
		stamp := time.Unix(1_000_000_000+serial, 0)
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// served returns the serial number of the certificate that a server shows, and the
// protocol and status of an answer.
func served(t *testing.T, address, host string) (serial int64, protocol string, status int) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+address+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.TLS.PeerCertificates[0].SerialNumber.Int64(), res.Proto, res.StatusCode
}

func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := issue(t, dir, "one.example", 1)
	cert, err := server.LoadCertificate(certFile, keyFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, nil)
	srv, err := server.NewTenants(h.stores, h.tokens.Verify, &server.Options{Certificate: cert})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(ctx, listener, srv, cert) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	address := listener.Addr().String()
	look := func(host string, wantSerial int64, wantStatus int) {
		t.Helper()
		serial, protocol, status := served(t, address, host)
		if serial != wantSerial || protocol != "HTTP/2.0" || status != wantStatus {
			t.Errorf("%s: certificate %d, %s, status %d; want certificate %d, status %d", host, serial, protocol, status, wantSerial, wantStatus)
		}
	}
	look("one.example", 1, 200)
	look("a.wild.example:7717", 1, 200)
	look("a.b.wild.example", 1, 421)
	look("two.example", 1, 421)
	issue(t, dir, "two.example", 2)
	look("two.example", 2, 200)
	look("one.example", 2, 421)
	// A file that cannot be read leaves the old one in use.
	if err := os.WriteFile(certFile, []byte("half a certif"), 0o600); err != nil {
		t.Fatal(err)
	}
	look("two.example", 2, 200)
	issue(t, dir, "three.example", 3)
	look("three.example", 3, 200)
	if _, err := server.LoadCertificate(certFile, certFile, nil); err == nil {
		t.Error("a certificate without its key")
	}
}
