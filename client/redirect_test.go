package client_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// A redirect leads nowhere: the token is for the server that was named.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var got atomic.Int32
	elsewhere := serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer elsewhere.Close()
	here := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer here.Close()
	c := dial(t, here.URL, token)
	_, err := c.Store().Info(t.Context(), &stetv1.StoreInfoRequest{})
	if err == nil || !strings.Contains(err.Error(), "refusing the redirect") {
		t.Errorf("a call: %v", err)
	}
	if _, err := c.Blobs().Get(t.Context(), blob.ID{}); err == nil {
		t.Error("a stream was redirected")
	}
	if n := got.Load(); n != 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}

func TestExposedAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:7717": false, "http://[::1]:7717": false, "http://localhost": false, "http://a.localhost:80": false, "http://127.8.8.8": false,
		"https://example.com": false, "http://example.com": true, "http://192.168.1.2:7717": true, "http://localhost.example.com": true,
	} {
		if got := client.Exposed(address); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
}
