package server

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// stallTime is how long a peer may neither read nor send an expected byte.
const stallTime = 30 * time.Second

// stallPiece is how much of an answer a peer must take in that time.
const stallPiece = 64 << 10

// unstalled closes stalled peers. Reading what clients stream has no limit, because
// streams may be silent; waiting to write has one, because the pending data is held in
// memory. This ends a follower that never reads.
func unstalled(silent map[string]bool, after time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		out := &stallWriter{ResponseWriter: w}
		out.watch = watch{after: after, late: func() { giveUp(control, r) }}
		if r.Body != nil && r.Body != http.NoBody {
			in := &stallReader{ReadCloser: r.Body, silent: silent[r.URL.Path]}
			in.watch = watch{after: after, late: func() { _ = control.SetReadDeadline(time.Now()) }}
			r.Body = in
		}
		next.ServeHTTP(out, r)
		// The package http still sends the last of the answer, and with HTTP/1 takes the rest
		// of the request. For strangers this has a limit, see patient.
		if callOf(r.Context()).Token == "" {
			return
		}
		end := time.Now().Add(after)
		if r.ProtoMajor == 1 {
			_ = control.SetReadDeadline(end)
		} else if r.Context().Err() != nil {
			return // the stream has ended
		}
		_ = control.SetWriteDeadline(end)
	})
}

// giveUp ends a request whose peer is stalled. A connection of HTTP/1 is closed: with a
// deadline the package http would take the peer for gone, but might use the connection
// for further requests.
func giveUp(control *http.ResponseController, r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok && r.ProtoMajor == 1 {
		g.Close()
		return
	}
	_ = control.SetReadDeadline(time.Now()) // other servers may not support it
	_ = control.SetWriteDeadline(time.Now())
}

// watch calls late if it is not stopped in time. It never does once stop has returned:
// the connection may then serve another request.
type watch struct {
	after time.Duration
	late  func()

	mu    sync.Mutex // guards the rest; held while late runs
	timer *time.Timer
	begun time.Time // zero while stopped
}

func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.after, w.fire)
		return
	}
	w.timer.Reset(w.after)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Time{}
	w.timer.Stop()
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun.IsZero() && time.Since(w.begun) >= w.after { // else it was stopped, or began again
		w.late()
	}
}

type stallReader struct {
	io.ReadCloser
	silent bool // reading may take any time
	watch  watch
}

func (r *stallReader) Read(p []byte) (int, error) {
	if !r.silent {
		r.watch.start()
		defer r.watch.stop()
	}
	return r.ReadCloser.Read(p)
}

// Close takes the rest of a body that a handler did not want, which has a limit for
// streams as well.
func (r *stallReader) Close() error {
	r.watch.start()
	defer r.watch.stop()
	return r.ReadCloser.Close()
}

type stallWriter struct {
	http.ResponseWriter
	watch watch
}

func (w *stallWriter) Write(p []byte) (n int, err error) {
	for {
		m, err := w.write(p[n:min(len(p), n+stallPiece)])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

func (w *stallWriter) write(p []byte) (int, error) {
	w.watch.start()
	defer w.watch.stop()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, which handlers of streams use.
func (w *stallWriter) Flush() {
	w.watch.start()
	defer w.watch.stop()
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *stallWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
