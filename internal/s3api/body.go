package s3api

import (
	"io"
	"net/http"
	"sync"
)

// body gives out what an attempt sends. The transport may still read it when the attempt
// has ended, because a service may answer before it has read everything; by then the bytes
// may belong to somebody else.
type body struct {
	data []byte

	mu    sync.Mutex // guards ended and all reading
	ended bool
}

// attach makes a request send the body, from its start each time it is asked for.
func (b *body) attach(req *http.Request) {
	if len(b.data) == 0 {
		req.Body = http.NoBody
		return
	}
	req.ContentLength = int64(len(b.data))
	req.GetBody = func() (io.ReadCloser, error) { return &bodyReader{body: b}, nil }
	req.Body = &bodyReader{body: b}
}

// end makes all readers fail, and returns when none reads.
func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

type bodyReader struct {
	body *body
	read int
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.ended {
		return 0, io.ErrClosedPipe
	}
	if r.read == len(r.body.data) {
		return 0, io.EOF
	}
	n := copy(p, r.body.data[r.read:])
	r.read += n
	return n, nil
}

// Close implements io.Closer.
func (r *bodyReader) Close() error { return nil }
