// Package client uses a stet server as if it were a store on this machine.
//
//	c, err := client.New("http://127.0.0.1:7717", &client.Options{Token: token})
//	db := stet.NewRemote(c.Blobs(), c.Rows(), c.Close, nil)
//	for event, err := range c.Agents().Follow(ctx, "a1", nil) { … }
//
// Blobs and Rows fulfil the contracts of blob.Store and kv.Store; errors of the
// server are returned as errors of those packages. Every service of stet runs on top
// of them on this machine, including checkpoints of local directories. Agents are
// followed over any number of connections, each event once and in order, and copied
// into a store of this machine. Upload and Download move conversations between two
// stores. Conversations and Checkpoints are the server's own services, whose
// checkpoints cover directories on its machine.
package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// Options configure a client; nil gives the defaults.
type Options struct {
	// Token is sent with every call.
	Token string
	// HTTPClient sends the calls; by default one with HTTP/2, with and without TLS.
	HTTPClient *http.Client
}

// Client is a connection to one server.
type Client struct {
	http          *http.Client
	base          string
	blobs         stetv1connect.BlobServiceClient
	rows          stetv1connect.RowServiceClient
	store         stetv1connect.StoreServiceClient
	conversations stetv1connect.ConversationServiceClient
	checkpoints   stetv1connect.CheckpointServiceClient
	transfers     stetv1connect.TransferServiceClient
	agents        stetv1connect.CloudAgentServiceClient
	follow        aiserverv1connect.BackgroundComposerServiceClient
}

// New returns a client of the server at an http or https address. It does not connect
// yet.
func New(address string, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http or https address", address)
	}
	if u.User != nil || u.RawQuery != "" {
		return nil, errors.New("the address must not contain a user or a query; do not put tokens there")
	}
	c := &Client{http: opts.HTTPClient, base: strings.TrimSuffix(u.String(), "/")}
	if c.http == nil {
		c.http = defaultHTTP()
	}
	if opts.Token != "" {
		c.http = &http.Client{Transport: &bearer{token: opts.Token, next: c.http.Transport}, CheckRedirect: refuseRedirect}
	}
	c.blobs = stetv1connect.NewBlobServiceClient(c.http, c.base, connect.WithHTTPGet())
	c.rows = stetv1connect.NewRowServiceClient(c.http, c.base)
	c.store = stetv1connect.NewStoreServiceClient(c.http, c.base)
	c.conversations = stetv1connect.NewConversationServiceClient(c.http, c.base)
	c.checkpoints = stetv1connect.NewCheckpointServiceClient(c.http, c.base)
	c.transfers = stetv1connect.NewTransferServiceClient(c.http, c.base)
	c.agents = stetv1connect.NewCloudAgentServiceClient(c.http, c.base)
	// Events are small: compressing each one costs more than it saves.
	c.follow = aiserverv1connect.NewBackgroundComposerServiceClient(c.http, c.base, connect.WithAcceptCompression("gzip", nil, nil))
	return c, nil
}

// Conversations returns the server's own service for conversations, for callers that
// send states instead of running conversation.Store here.
func (c *Client) Conversations() stetv1connect.ConversationServiceClient { return c.conversations }

// Checkpoints returns the server's own service for checkpoints of directories on the
// server's machine.
func (c *Client) Checkpoints() stetv1connect.CheckpointServiceClient { return c.checkpoints }

// Store returns the server's own maintenance service.
func (c *Client) Store() stetv1connect.StoreServiceClient { return c.store }

// HTTP returns the client that sends calls, with the token, and the address, for
// creating clients of other services.
func (c *Client) HTTP() (*http.Client, string) { return c.http, c.base }

// Close ends idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// refuseRedirect keeps the token from being sent to the target of a redirect. Servers
// of this protocol never redirect.
func refuseRedirect(r *http.Request, _ []*http.Request) error {
	return fmt.Errorf("refusing the redirect to %s: the token is for this server only", r.URL.Redacted())
}

// Exposed reports whether a token that is sent to an address can be read on the way,
// because the address is on another machine and without TLS.
func Exposed(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	ip := net.ParseIP(host)
	return host != "localhost" && !strings.HasSuffix(host, ".localhost") && (ip == nil || !ip.IsLoopback())
}

func defaultHTTP() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport.Protocols = protocols
	// All calls share a connection. A firewall may drop it silently, which only a
	// ping detects; new calls then need another one.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second}
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

// CloseIdleConnections forwards the call of http.Client.
func (b *bearer) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
