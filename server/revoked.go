package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/fault"
)

const (
	tokenCheck = 400 * time.Millisecond // between two checks of the tokens of open streams
	tokenGrace = 300 * time.Millisecond // for a stream to send the reason
)

// errRevoked ends a stream whose token is no longer valid.
var errRevoked = fault.New(fault.Denied, "the token is no longer valid: it was revoked or has expired")

// revocations ends the streams of tokens that are no longer valid. One goroutine
// checks each token once, however many streams it has, and runs only while there are
// streams.
type revocations struct {
	who   func(*http.Request) (access.Principal, error)
	every time.Duration

	mu   sync.Mutex // guards the rest
	open map[string]map[*openStream]bool
	stop chan struct{} // ends the goroutine, with the last stream
}

type openStream struct {
	request *http.Request // carries the token
	end     func()
}

func newRevocations(who func(*http.Request) (access.Principal, error)) *revocations {
	return &revocations{who: who, every: tokenCheck, open: make(map[string]map[*openStream]bool)}
}

// watch returns the request of a stream with a context that ends when its token does.
// The caller calls leave when the stream has ended.
func (v *revocations) watch(w http.ResponseWriter, r *http.Request) (watched *http.Request, leave func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	control := http.NewResponseController(w)
	body := &interruptible{ReadCloser: r.Body, control: control}
	if r.ProtoMajor == 1 {
		body.late = func() { w.Header().Set("Connection", "close") }
	}
	watched = r.WithContext(ctx)
	if r.Body != http.NoBody {
		watched.Body = body
	}
	var late *time.Timer
	key := strings.Join(r.Header["Authorization"], "\n")
	// A copy: the handler changes the header while the stream is open.
	s := &openStream{request: &http.Request{Header: r.Header.Clone()}}
	s.end = sync.OnceFunc(func() {
		cancel(errRevoked)
		body.interrupt() // it may be waiting for the peer
		late = time.AfterFunc(tokenGrace, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.open[key][s] { // else it has ended, and its connection may serve another
				giveUp(control, r)
			}
		})
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.open) == 0 {
		v.stop = make(chan struct{})
		go v.run(v.stop)
	}
	if v.open[key] == nil {
		v.open[key] = make(map[*openStream]bool)
	}
	v.open[key][s] = true
	return watched, func() {
		cancel(nil)
		v.mu.Lock()
		defer v.mu.Unlock()
		if late != nil {
			late.Stop()
		}
		if delete(v.open[key], s); len(v.open[key]) == 0 {
			delete(v.open, key)
		}
		if len(v.open) == 0 {
			close(v.stop)
		}
	}
}

// interruptible is the body of a request whose reader can be interrupted. It sets the
// deadline of a connection of HTTP/1 only while a Read waits: as soon as the body has
// been read, by whoever did, the package http reads what comes next, and an interruption
// of that would end the requests of others which a proxy sends over the same connection.
type interruptible struct {
	io.ReadCloser
	control *http.ResponseController
	// late is called in a Read that was interrupted, perhaps only after the last byte. It is
	// nil with HTTP/2, where streams do not share deadlines, and where others may write the
	// answer while one reads.
	late func()

	mu                   sync.Mutex // guards the rest
	reading, interrupted bool
}

func (b *interruptible) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.interrupted {
		b.mu.Unlock()
		return 0, errRevoked
	}
	b.reading = true
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading = false; b.interrupted && b.late != nil {
		b.late()
	}
	return n, err
}

// interrupt ends a Read that waits for the peer, and all later ones.
func (b *interruptible) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.interrupted = true; b.reading {
		_ = b.control.SetReadDeadline(time.Now())
	}
}

// run checks the tokens until it is stopped.
func (v *revocations) run(stop chan struct{}) {
	tick := time.NewTicker(v.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			v.look()
		case <-stop:
			return
		}
	}
}

// look ends the streams with invalid tokens. If tokens cannot be read at the moment,
// no stream ends.
func (v *revocations) look() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, streams := range v.open {
		var err error
		for s := range streams {
			_, err = v.who(s.request)
			break
		}
		if !errors.Is(err, access.ErrDenied) {
			continue
		}
		for s := range streams {
			s.end()
		}
	}
}
