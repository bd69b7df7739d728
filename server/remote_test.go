package server_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
	"github.com/stet-dev/stet/server"
)

const token = "0123456789abcdef0123456789abcdef"

// start serves a fresh store on a loopback port and returns its address.
func start(t *testing.T, opts *server.Options) string {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if opts == nil {
		opts = &server.Options{Token: token}
	}
	return serveDB(t, db, opts)
}

// serveDB serves a store on a loopback port and returns its address.
func serveDB(t *testing.T, db *stet.DB, opts *server.Options) string {
	t.Helper()
	handler, err := server.New(db, opts)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}

func dial(t *testing.T, address, token string) *client.Client {
	t.Helper()
	c, err := client.New(address, &client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestBlobsOverTheWire(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return dial(t, start(t, nil), token).Blobs() })
}

func TestRowsOverTheWire(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Store { return dial(t, start(t, nil), token).Rows() })
}

func TestReferencesOverTheWire(t *testing.T) {
	kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
		c := dial(t, start(t, nil), token)
		return c.Rows(), c.Blobs()
	})
}

// status sends a request and returns the status of the answer.
func status(t *testing.T, method, address, path string, change func(*http.Request)) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func TestWhoIsLetIn(t *testing.T) {
	address := start(t, nil)
	const call = "/stet.v1.StoreService/Info"
	with := func(header, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(header, value) }
	}
	for _, test := range []struct {
		name   string
		method string
		path   string
		change func(*http.Request)
		want   int
	}{
		{"the token as a bearer", "POST", call, with("Authorization", "Bearer "+token), 200},
		{"the token as a cookie", "POST", call, with("Cookie", "stet="+token), 401},
		{"no token", "POST", call, nil, 401},
		{"another token", "POST", call, with("Authorization", "Bearer "+strings.Repeat("0", 32)), 401},
		{"the token in the address", "POST", call + "?token=" + token, nil, 401},
		{"another host", "POST", call, func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Authorization", "Bearer "+token)
		}, 421},
		{"another site's page", "POST", call, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Authorization", "Bearer "+token)
		}, 403},
		{"the page without a token", "GET", "/", nil, 200},
		{"a login that sets a cookie", "POST", "/login", with("Authorization", "Bearer "+token), 404},
		{"health without a token", "GET", "/healthz", nil, 200},
		{"readiness without a token", "GET", "/readyz", nil, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := status(t, test.method, address, test.path, test.change); got != test.want {
				t.Errorf("status %d, want %d", got, test.want)
			}
		})
	}
}

// Cookies go to every server of a host, whatever its port. Nothing that this server
// sets is worth stealing, and what an earlier release set is removed.
func TestNoCookieHoldsAToken(t *testing.T) {
	address := start(t, nil)
	for _, path := range []string{"/", "/c/x", "/assets/app.js"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Cookie", "stet="+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		for _, c := range res.Cookies() {
			if c.Value != "" || c.MaxAge >= 0 {
				t.Errorf("%s sets the cookie %q", path, c)
			}
		}
		if len(res.Cookies()) != 1 {
			t.Errorf("%s: the old cookie is not removed", path)
		}
	}
}
