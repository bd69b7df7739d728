package server

import (
	"context"
	"errors"
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

// watch returns the context of a stream. It ends when the token of the request does.
// The caller calls leave when the stream has ended.
func (v *revocations) watch(w http.ResponseWriter, r *http.Request) (ctx context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	control := http.NewResponseController(w)
	var late *time.Timer
	// A copy: the handler changes the header while the stream is open.
	s := &openStream{request: &http.Request{Header: r.Header.Clone()}}
	s.end = sync.OnceFunc(func() {
		cancel(errRevoked)
		_ = control.SetReadDeadline(time.Now()) // it may be waiting for the peer
		late = time.AfterFunc(tokenGrace, func() { _ = control.SetWriteDeadline(time.Now()) })
	})
	key := strings.Join(r.Header["Authorization"], "\n")
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
	return ctx, func() {
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
