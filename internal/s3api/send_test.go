package s3api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// proxied counts the requests that came by the proxy of the environment.
var proxied atomic.Int64

// TestMain sets a proxy before the first request: net/http looks for it once. It is not used
// for addresses of this machine, which all other tests use.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host == "bucket.s3.example.test" {
			proxied.Add(1)
		}
	}))
	os.Setenv("HTTP_PROXY", proxy.URL)
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

func TestProxyOfTheEnvironment(t *testing.T) {
	client, err := s3api.New(s3api.Config{
		Bucket: "bucket", Region: "us-east-1", Endpoint: "http://s3.example.test", Credentials: s3api.Static(s3api.Keys{}), HTTP: s3api.NewHTTP(0, nil),
	})
	if err == nil {
		err = client.HeadBucket(t.Context())
	}
	if err != nil || proxied.Load() != 1 {
		t.Errorf("%d requests came by the proxy, %v", proxied.Load(), err)
	}
}

// served returns a client for a service, which tries three times.
func served(t *testing.T, h http.HandlerFunc) *s3api.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return clientOf(t, server.URL, s3api.NewHTTP(time.Minute, nil))
}

func clientOf(t *testing.T, endpoint string, http *http.Client) *s3api.Client {
	t.Helper()
	t.Cleanup(http.CloseIdleConnections)
	client, err := s3api.New(s3api.Config{
		Bucket: "bucket", Region: "us-east-1", Endpoint: endpoint, HTTP: http, MaxAttempts: 3, MaxWait: time.Millisecond,
		Credentials: s3api.Static(s3api.Keys{Access: "access", Secret: "canary", Session: "canary"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const listing = `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key> a&amp;b </Key><Size>7</Size><LastModified>2026-01-02T03:04:05.678Z</LastModified></Contents></ListBucketResult>`

// TestAttempts has a service fail once, and always.
func TestAttempts(t *testing.T) {
	refuse := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.Header().Set("X-Amz-Request-Id", "req-1")
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>words</Message></Error>", code)
		}
	}
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	for _, c := range []struct {
		name  string
		fail  http.HandlerFunc
		again bool
		says  string
	}{
		{"server error", refuse(500, "InternalError"), true, "InternalError: words (status 500, request req-1)"},
		{"slow down", refuse(503, "SlowDown"), true, "SlowDown"},
		{"too many requests", refuse(429, ""), true, "status 429"},
		{"bad gateway without a document", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, true, "Bad Gateway (status 502"},
		{"a page of a gateway", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(504)
			_, _ = io.WriteString(w, "<html><p>")
		}, true, "status 504"},
		{"body changed on the way", refuse(400, "BadDigest"), true, "BadDigest"},
		{"throttled", refuse(400, "RequestLimitExceeded"), true, "RequestLimitExceeded"},
		{"an error in a good answer", text("  <Error><Code>InternalError</Code><Message>late</Message></Error>"), true, "InternalError: late (status 200"},
		{"no document", text("welcome"), true, "cannot read the answer"},
		{"another document", text("<html></html>"), true, "it is a document html, not ListBucketResult"},
		{"half a document", text(listing[:len(listing)/2]), true, "cannot read the answer"},
		{"nothing", text(""), true, "cannot read the answer"},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, listing[:20])
		}, true, "unexpected EOF"},
		{"connection broken", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true, "EOF"},
		{"denied", refuse(403, "AccessDenied"), false, "AccessDenied: words"},
		{"denied without a reason", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, false, "Forbidden (status 403"},
		{"absent", refuse(404, "NoSuchBucket"), false, "NoSuchBucket"},
		{"not implemented", refuse(501, "NotImplemented"), false, "NotImplemented"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, false, "status 307"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, lasting := range []bool{false, true} {
				var requests atomic.Int64
				client := served(t, func(w http.ResponseWriter, r *http.Request) {
					if requests.Add(1) == 1 || lasting {
						c.fail(w, r)
						return
					}
					text(listing)(w, r)
				})
				got, err := client.List(t.Context(), s3api.Query{})
				want := int64(1)
				if c.again {
					want = 2
				}
				if c.again && lasting {
					want = 3
				}
				if requests.Load() != want {
					t.Errorf("lasting %v: %d requests, want %d", lasting, requests.Load(), want)
				}
				if c.again && !lasting {
					if err != nil || len(got.Entries) != 1 {
						t.Errorf("failed once: got %v, %v", got, err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "http://") {
					t.Errorf("got %v, want an error that says %q", err, c.says)
				}
			}
		})
	}
}

func TestGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := served(t, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(500)
	})
	if err := client.HeadBucket(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestBodyIsSentAgain has a service refuse a body that it has read, in part or whole.
func TestBodyIsSentAgain(t *testing.T) {
	data := strings.Repeat("0123456789", 300_000) // large enough to be asked for
	for _, n := range []int64{0, 100_000, int64(len(data))} {
		var requests atomic.Int64
		var got []byte
		client := served(t, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) < 3 {
				_, _ = io.CopyN(io.Discard, r.Body, n)
				w.WriteHeader(503)
				return
			}
			got, _ = io.ReadAll(r.Body)
		})
		_, err := client.Put(t.Context(), "a", s3api.Content{Data: []byte(data), MD5: "x"})
		if err != nil || string(got) != data {
			t.Errorf("after %d bytes: %d arrived, %v", n, len(got), err)
		}
	}
}

// TestWrongClock has a service whose clock is another.
func TestWrongClock(t *testing.T) {
	ahead := 3 * time.Hour
	refusals := 0
	client := served(t, func(w http.ResponseWriter, r *http.Request) {
		now := time.Now().Add(ahead)
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || now.Sub(signed).Abs() > 15*time.Minute {
			refusals++
			w.WriteHeader(403)
			if r.Method != http.MethodHead {
				_, _ = io.WriteString(w, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
			}
			return
		}
		_, _ = io.WriteString(w, listing)
	})
	for i, run := range []func() error{
		func() error { _, err := client.List(t.Context(), s3api.Query{}); return err },
		func() error { return client.HeadBucket(t.Context()) },
		func() error { ahead = -time.Hour; return client.HeadBucket(t.Context()) },
		func() error { ahead = 0; _, err := client.List(t.Context(), s3api.Query{}); return err },
	} {
		if err := run(); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if refusals != 3 {
		t.Errorf("%d requests were refused, want one for each change of the clock", refusals)
	}
	// A clock that is right is no reason for another attempt.
	requests := 0
	client = served(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(403)
		_, _ = io.WriteString(w, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
	})
	if err := client.HeadBucket(t.Context()); err == nil || requests != 1 {
		t.Errorf("got %v after %d requests", err, requests)
	}
}

// TestSilentPeer has a service that says nothing, or stops in the middle.
func TestSilentPeer(t *testing.T) {
	for _, begin := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var connections atomic.Int64
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close() // when no other comes
				connections.Add(1)
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, begin)
				}
			}
		}()
		client := clientOf(t, "http://"+l.Addr().String(), s3api.NewHTTP(20*time.Millisecond, nil))
		_, err = client.List(t.Context(), s3api.Query{})
		if !errors.Is(err, os.ErrDeadlineExceeded) || connections.Load() != 3 {
			t.Errorf("%q: got %v after %d connections", begin, err, connections.Load())
		}
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	err = clientOf(t, "http://"+l.Addr().String(), s3api.NewHTTP(time.Minute, nil)).HeadBucket(t.Context())
	var answer *s3api.Error
	if err == nil || errors.As(err, &answer) || strings.Contains(err.Error(), "http://") {
		t.Errorf("got %v, want an error without an answer or an address", err)
	}
}
