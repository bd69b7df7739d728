package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/subscription"
)

// Prefix begins the addresses of streams. The path of a stream follows it.
const Prefix = "/v1/stream/"

// Options configure a handler; nil gives the defaults. They connect it to the server
// around it.
type Options struct {
	// Wait is how long a long-poll waits for data, and an idle event stream is silent;
	// 20 seconds by default.
	Wait time.Duration
	// Lasting is the time after which an event stream ends at the next pause, so that
	// the client reconnects; a minute by default.
	Lasting time.Duration
	// Count is called with the number of bytes that a request wants to store. The
	// handler calls end when they are stored or rejected.
	Count func(ctx context.Context, bytes int64) (end func(), err error)
	// Remove runs a deletion of the named thing, for an audit log.
	Remove func(ctx context.Context, what string, do func() error) error
	// Subscriptions are the subscriptions to the streams of the store; nil serves none.
	Subscriptions *subscription.Store
	// Sign returns a code over a message that only this server and others of the same stores
	// can make, on behalf of an owner; it fails if the owner may no longer call. Owner returns
	// the owner of a request. Both are needed for subscriptions.
	Sign  func(owner string, message []byte) ([]byte, error)
	Owner func(ctx context.Context) string
	// LocalHooks allows webhooks at addresses of this machine.
	LocalHooks bool
	// Note receives the errors of work that no request waits for.
	Note func(err error)
	// Sent is called after each answer, or part of one.
	Sent func(ctx context.Context)
	// Fail answers with an error that is not in the table of this package.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
}

// handler serves the streams of one store.
type handler struct {
	store *stream.Store
	opts  Options
	hooks *hooks // nil without subscriptions
}

// New returns the handler of a store's streams, for addresses that begin with Prefix.
// A request whose context ends is answered as if its time were over: a live read then
// ends properly, which is how a stopping server ends them. If the context has a cause,
// a long-poll fails with that.
func New(store *stream.Store, opts *Options) http.Handler {
	h := &handler{store: store}
	if opts != nil {
		h.opts = *opts
	}
	if h.opts.Wait <= 0 {
		h.opts.Wait = 20 * time.Second
	}
	if h.opts.Lasting <= 0 {
		h.opts.Lasting = time.Minute
	}
	if h.opts.Count == nil {
		h.opts.Count = func(context.Context, int64) (func(), error) { return func() {}, nil }
	}
	if h.opts.Remove == nil {
		h.opts.Remove = func(_ context.Context, _ string, do func() error) error { return do() }
	}
	if h.opts.Sent == nil {
		h.opts.Sent = func(context.Context) {}
	}
	if h.opts.Note == nil {
		h.opts.Note = func(error) {}
	}
	if h.opts.Subscriptions != nil {
		h.hooks = newHooks(h)
	}
	if h.opts.Fail == nil {
		h.opts.Fail = func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "this failed", http.StatusInternalServerError)
		}
	}
	return h
}

// Live reports whether a request is a live read, which may take long.
func Live(r *http.Request) bool {
	if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, Prefix) {
		return false
	}
	live := r.URL.Query().Get("live")
	return live == liveLongPoll || live == liveSSE
}

// Writes reports whether a request changes something.
func Writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, Prefix)
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if w.Header().Get("Cross-Origin-Resource-Policy") == "" {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	}
	if path == control || strings.HasPrefix(path, control+"/") {
		h.control(w, r)
		return
	}
	var err error
	switch r.Method {
	case http.MethodPut:
		err = h.create(w, r, path)
	case http.MethodPost:
		err = h.append(w, r, path)
	case http.MethodGet:
		err = h.read(w, r, path)
	case http.MethodHead:
		err = h.head(w, r, path)
	case http.MethodDelete:
		err = h.remove(w, r, path)
	case http.MethodOptions:
		Preflight(w)
	default:
		w.Header().Set("Allow", methods)
		err = fmt.Errorf("%w: streams know %s", errMethod, methods)
	}
	if err != nil {
		h.fail(w, r, err)
	}
}

// control is the first part of the paths that are not streams.
const control = "__ds"

const methods = "GET, HEAD, PUT, POST, DELETE, OPTIONS"

// Preflight answers a browser's preflight request. It names no origin: pages of other
// origins may read streams only if a server in front of this one allows it.
func Preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Allow", methods)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", strings.Join([]string{
		"Authorization", "Content-Type", "If-None-Match", headerSeq, headerTTL, headerExpires, headerClosed,
		headerProducer, headerEpoch, headerProducerSeq, headerSource, headerForkAt, headerForkSub,
	}, ", "))
	w.WriteHeader(http.StatusNoContent)
}

// body reads and counts the body of a request that stores it.
func (h *handler) body(w http.ResponseWriter, r *http.Request) (data []byte, end func(), err error) {
	if err := plain(w, r); err != nil {
		return nil, nil, err
	}
	data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, stream.MaxAppend))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, nil, stream.ErrTooLarge
	}
	if err != nil {
		return nil, nil, badRequest("the body could not be read: %v", err)
	}
	end, err = h.opts.Count(r.Context(), int64(len(data)))
	return data, end, err
}

func (h *handler) head(w http.ResponseWriter, r *http.Request, path string) error {
	info, err := h.store.Info(r.Context(), path)
	if err != nil {
		return err
	}
	describe(w.Header(), info)
	w.Header().Set("ETag", etag(info, "-1", info.Tail, info.Closed))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return nil
}

func (h *handler) remove(w http.ResponseWriter, r *http.Request, path string) error {
	err := h.opts.Remove(r.Context(), "stream "+path, func() error { return h.store.Delete(r.Context(), path) })
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
