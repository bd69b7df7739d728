// Package client uses a stet server as if it were a store on this machine.
//
//	c, err := client.New("http://127.0.0.1:7717", &client.Options{Token: token})
//	db, err := stet.NewRemote(ctx, c.Blobs(), c.Rows())
//
// Blobs and Rows keep the contracts of blob.Store and kv.Store; errors of the
// server come back as the errors of those packages. Every service of stet runs
// on top of them. Callers in other languages use the API itself.
package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// Options shape a client; nil gives the defaults.
type Options struct {
	// Token is sent with every call.
	Token string
	// HTTPClient sends the calls; by default one that speaks HTTP/2 with and
	// without TLS.
	HTTPClient *http.Client
}

// Client talks to one server.
type Client struct {
	http  *http.Client
	base  string
	blobs stetv1connect.BlobServiceClient
	rows  stetv1connect.RowServiceClient
	store stetv1connect.StoreServiceClient
}

// New returns a client of the server at an http or https address. It sends
// nothing yet.
func New(address string, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no http or https address", address)
	}
	if u.User != nil || u.RawQuery != "" {
		return nil, errors.New("the address must hold neither a user nor a query: tokens do not belong there")
	}
	c := &Client{http: opts.HTTPClient, base: strings.TrimSuffix(u.String(), "/")}
	if c.http == nil {
		c.http = defaultHTTP()
	}
	if opts.Token != "" {
		c.http = &http.Client{Transport: &bearer{token: opts.Token, next: c.http.Transport}}
	}
	c.blobs = stetv1connect.NewBlobServiceClient(c.http, c.base, connect.WithHTTPGet())
	c.rows = stetv1connect.NewRowServiceClient(c.http, c.base)
	c.store = stetv1connect.NewStoreServiceClient(c.http, c.base)
	return c, nil
}

// HTTP returns the client that sends calls, with the token, and the address, for
// those who make clients of further services.
func (c *Client) HTTP() (*http.Client, string) { return c.http, c.base }

// Close ends idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

func defaultHTTP() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport.Protocols = protocols
	return &http.Client{Transport: transport}
}

// bearer adds the token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(r)
}

// CloseIdleConnections passes on what http.Client asks for.
func (b *bearer) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
