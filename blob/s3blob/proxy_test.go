package s3blob_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/internal/realservers"
)

// fault does something else with a request than passing it on.
type fault func(w http.ResponseWriter, r *http.Request, upstream http.Handler)

// proxy is a way to a server that can be made a bad one.
type proxy struct {
	url      string
	upstream http.Handler

	mu       sync.Mutex // guards what follows
	matches  func(*http.Request) bool
	fault    fault
	times    int // that it is still applied
	applied  int
	requests int
	under    int // requests that are under way
	changed  *sync.Cond
}

func newProxy(t *testing.T, s *realservers.S3Server) *proxy {
	t.Helper()
	target, err := url.Parse(s.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}
	p := &proxy{upstream: &httputil.ReverseProxy{
		// The host is signed, so that it must arrive as it was sent.
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport:    transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	p.changed = sync.NewCond(&p.mu)
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	p.url = server.URL
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.enter(1)
	defer p.enter(-1)
	if f := p.next(r); f != nil {
		f(w, r, p.upstream)
		return
	}
	p.upstream.ServeHTTP(w, r)
}

func (p *proxy) enter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under += n
	p.changed.Broadcast()
}

// awaitAlone waits until the calling request is the only one under way.
func (p *proxy) awaitAlone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.under > 1 {
		p.changed.Wait()
	}
}

func (p *proxy) next(r *http.Request) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.times == 0 || !p.matches(r) {
		return nil
	}
	p.times--
	p.applied++
	return p.fault
}

// always is more often than anybody tries.
const always = 1 << 30

// set applies a fault to the next requests of a kind.
func (p *proxy) set(matches func(*http.Request) bool, times int, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.matches, p.times, p.fault, p.applied = matches, times, f, 0
}

func (p *proxy) clear() { p.set(nil, 0, nil) }

func (p *proxy) count() (applied, requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied, p.requests
}

// throughProxy returns a new bucket and the bad way to it.
func throughProxy(t *testing.T) (*s3blob.Bucket, *proxy) {
	t.Helper()
	s := realservers.S3(t)
	p := newProxy(t, s)
	return open(t, realservers.S3URL(p.url, s.NewBucket(t)), options(s)), p
}

// Which requests are hit.
func anyRequest(*http.Request) bool  { return true }
func uploads(r *http.Request) bool   { return r.Method == http.MethodPut }
func downloads(r *http.Request) bool { return r.Method == http.MethodGet && !isListing(r) }
func isListing(r *http.Request) bool { return r.URL.Query().Has("list-type") }
func isRemoval(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.URL.Query().Has("delete")
}
func completion(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}
func lastPart(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "3" }

// refuse answers with a status and a code.
func refuse(status int, code string) fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // whether it arrives does not matter
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>as the test wants it</Message></Error>")
	}
}

// cutRequest ends the connection in the middle of what is sent.
func cutRequest(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	panic(http.ErrAbortHandler)
}

// loseAnswer has the server do it and tells nobody.
func loseAnswer(_ http.ResponseWriter, r *http.Request, upstream http.Handler) {
	upstream.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// cutAnswer ends the connection after n bytes of the answer, whose headers
// promise all.
func cutAnswer(n int) fault {
	return func(w http.ResponseWriter, r *http.Request, upstream http.Handler) {
		upstream.ServeHTTP(&cutter{ResponseWriter: w, left: n}, r)
	}
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// flipRequest changes a bit of what is sent.
func flipRequest(w http.ResponseWriter, r *http.Request, upstream http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		panic(http.ErrAbortHandler)
	}
	body[len(body)/2] ^= 1
	r.Body = io.NopCloser(bytes.NewReader(body))
	upstream.ServeHTTP(w, r)
}

// flipAnswer changes a bit of the answer.
func flipAnswer(w http.ResponseWriter, r *http.Request, upstream http.Handler) {
	upstream.ServeHTTP(&flipper{ResponseWriter: w}, r)
}

type flipper struct {
	http.ResponseWriter
	done bool
}

func (f *flipper) Write(p []byte) (int, error) {
	if len(p) > 0 && !f.done {
		f.done = true
		p = bytes.Clone(p)
		p[len(p)/2] ^= 1
	}
	return f.ResponseWriter.Write(p)
}

// stall never answers.
func stall(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// withoutHeaders passes a request's answer on without some headers.
func withoutHeaders(names ...string) fault {
	return func(w http.ResponseWriter, r *http.Request, upstream http.Handler) {
		upstream.ServeHTTP(&stripper{w, names}, r)
	}
}

type stripper struct {
	http.ResponseWriter
	names []string
}

func (s *stripper) WriteHeader(status int) {
	for name := range s.Header() {
		for _, prefix := range s.names {
			if strings.HasPrefix(strings.ToLower(name), prefix) {
				s.Header().Del(name)
			}
		}
	}
	s.ResponseWriter.WriteHeader(status)
}
