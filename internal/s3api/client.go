package s3api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"
)

// Config says which bucket a client is for.
type Config struct {
	Bucket, Region string
	// Endpoint is empty for AWS.
	Endpoint string
	// PathStyle has the name of the bucket in the path of each address.
	PathStyle   bool
	Credentials Credentials
	// HTTP is that of NewHTTP.
	HTTP        *http.Client
	MaxAttempts int
	MaxWait     time.Duration
}

// Client sends the requests for one bucket. It is safe for concurrent use.
type Client struct {
	sender      Sender
	place       place
	scope       Scope
	credentials Credentials
}

// New returns a client. It connects to nothing.
func New(config Config) (*Client, error) {
	endpoint := config.Endpoint
	if endpoint == "" {
		var err error
		if endpoint, err = Endpoint("s3", config.Region); err != nil {
			return nil, err
		}
	}
	place, err := locate(endpoint, config.Bucket, config.PathStyle)
	if err != nil {
		return nil, err
	}
	c := &Client{place: place, scope: Scope{SigningRegion(config.Region), "s3"}, credentials: config.Credentials}
	c.sender.HTTP, c.sender.MaxAttempts, c.sender.MaxWait = config.HTTP, config.MaxAttempts, config.MaxWait
	return c, nil
}

// Region returns the region that requests are signed for.
func (c *Client) Region() string { return c.scope.Region }

// request is what a request has besides its signature.
type request struct {
	method string
	key    string // empty for the bucket itself
	query  url.Values
	header http.Header
	body   []byte
	// opaque says that the body has checksums of its own. TLS then keeps it from changing on
	// the way, and the signature leaves it out, which saves time.
	opaque bool
}

// expectAbove is the size of bodies that are sent only after the service agreed to take them.
const expectAbove = 2 << 20

// do sends a request. The function read takes its good answer and closes the body.
func (c *Client) do(ctx context.Context, r request, read func(*http.Response) error) error {
	sent := &body{data: r.body}
	defer sent.end()
	hash := unsigned
	if !r.opaque || c.place.scheme != "https" {
		hash = Hash(r.body)
	}
	build := func(now time.Time) (*http.Request, error) {
		keys, err := c.credentials(ctx)
		if err != nil {
			return nil, err
		}
		req, err := c.build(ctx, r)
		if err != nil {
			return nil, err
		}
		sent.attach(req)
		if len(r.body) > expectAbove {
			req.Header.Set("Expect", "100-continue")
		}
		req.Header.Set("X-Amz-Content-Sha256", hash)
		Sign(req, keys, c.scope, hash, now)
		return req, nil
	}
	return c.sender.Do(ctx, build, read)
}

// build makes a request that is not signed.
func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, "", nil)
	if err != nil {
		return nil, err
	}
	req.URL = c.place.object(r.key, r.query)
	if r.header != nil {
		req.Header = r.header.Clone()
	}
	req.Header.Set("User-Agent", "stet")
	req.Header.Set("Accept-Encoding", "identity")
	return req, nil
}

// send is do for requests whose answers say nothing but that they are good.
func (c *Client) send(ctx context.Context, r request) (http.Header, error) {
	var header http.Header
	err := c.do(ctx, r, func(res *http.Response) error {
		header = res.Header
		_, err := readBody(res)
		return err
	})
	return header, err
}

// ask is do for requests that are answered by an XML document with a given root. A root that
// is empty stands for any but Error.
func (c *Client) ask(ctx context.Context, r request, root string) (*element, error) {
	var answer *element
	err := c.do(ctx, r, func(res *http.Response) error {
		text, err := readBody(res)
		if err != nil {
			return unreadable(res, err)
		}
		if answer, err = parseXML(text); err != nil {
			return unreadable(res, err)
		}
		if answer.is("Error") {
			// The service began the answer before it knew how it would end.
			e := &Error{Status: res.StatusCode, RequestID: requestID(res)}
			e.fill(answer)
			return e
		}
		if root != "" && !answer.is(root) {
			return unreadable(res, &wrongRoot{answer.name, root})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

type wrongRoot struct{ got, want string }

// Error implements error.
func (e *wrongRoot) Error() string {
	return "it is a document " + cmp.Or(e.got, "without a name") + ", not " + e.want
}

// presign returns the address of a request that is valid for a while.
func (c *Client) presign(ctx context.Context, method, key string, ttl time.Duration) (string, error) {
	keys, err := c.credentials(ctx)
	if err != nil {
		return "", err
	}
	req, err := c.build(ctx, request{method: method, key: key})
	if err != nil {
		return "", err
	}
	return Presign(req, keys, c.scope, ttl, c.sender.Now()), nil
}
