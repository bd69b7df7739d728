package streams_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/server/streams"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/subscription"
)

// newControl serves streams with subscriptions.
func newControl(t *testing.T) *site {
	blobs := memblob.New()
	rows := &watched{memkv.New(blobs), func() {}}
	s := &site{Store: stream.New(blobs, rows, nil), t: t, rows: rows}
	s.serve(&streams.Options{}, nil)
	return s
}

// serve replaces the handler, as a restart does.
func (s *site) serve(opts *streams.Options, now func() time.Time) {
	opts.Subscriptions = subscription.New(s.Store, s.rows, &subscription.Options{Now: now})
	opts.Owner = func(context.Context) string { return "me" }
	opts.Sign = func(string, []byte) ([]byte, error) { return []byte(strings.Repeat("k", 32)), nil }
	s.handler = streams.New(s.Store, opts)
}

// An error of subscriptions has the code of the protocol in its JSON, and a reason in its
// header.
func TestErrorsOfSubscriptionsHaveReasons(t *testing.T) {
	s := newControl(t)
	const at = "/v1/stream/__ds/subscriptions/"
	s.want(s.do("PUT", at+"s", `{"type":"pull-wake","pattern":"a/*","wake_stream":"wakes"}`), 201)
	s.want(s.do("PUT", "/v1/stream/a/1", "", "Content-Type", "text/plain"), 201)
	s.want(s.do("POST", "/v1/stream/a/1", "one", "Content-Type", "text/plain"), 204)
	s.want(s.do("POST", at+"s/claim", `{"worker":"w1"}`), 200)
	for _, c := range []struct {
		method, target, body string
		status               int
		code, reason         string
		encoding             string
	}{
		{"GET", at + "none", "", 404, "SUBSCRIPTION_NOT_FOUND", "subscription-not-found", ""},
		{"GET", "/v1/stream/__ds/nothing", "", 404, "SUBSCRIPTION_NOT_FOUND", "subscription-not-found", ""},
		{"PUT", at + "n", "{}", 415, "INVALID_REQUEST", "content-encoding", "gzip"},
		{"PATCH", at + "s", "", 405, "INVALID_REQUEST", "unknown-method", ""},
		{"PUT", at + "n", "{", 400, "INVALID_REQUEST", "bad-request", ""},
		{"PUT", at + "n", `{"type":"pull-wake","pattern":"*","wake_stream":"w","lease_ttl_ms":600001}`, 400, "INVALID_REQUEST", "bad-request", ""},
		{"PUT", at + "n", `{"type":"pull-wake","pattern":"*","wake_stream":"w\n"}`, 400, "INVALID_REQUEST", "invalid-subscription", ""},
		{"PUT", at + "n", `{"type":"other"}`, 400, "INVALID_REQUEST", "invalid-subscription", ""},
		{"PUT", at + "n", `{"type":"webhook","pattern":"*","webhook":{"url":"http://example.com"}}`, 400, "WEBHOOK_URL_REJECTED", "invalid-subscription", ""},
		{"PUT", at + "s", `{"type":"pull-wake","pattern":"b/*","wake_stream":"wakes"}`, 409, "SUBSCRIPTION_ALREADY_EXISTS", "subscription-exists", ""},
		{"POST", at + "s/ack", "{}", 401, "TOKEN_INVALID", "invalid-wake-token", ""},
		{"POST", at + "s/claim", `{"worker":"w2"}`, 409, "ALREADY_CLAIMED", "wake-claimed", ""},
	} {
		w := s.do(c.method, c.target, c.body, "Content-Encoding", c.encoding)
		var said struct{ Error struct{ Code string } }
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != c.status || said.Error.Code != c.code {
			t.Errorf("%s %s %s: %d %s, want %d and %s", c.method, c.target, c.body, w.Code, w.Body, c.status, c.code)
		}
		if got := w.Header().Get("Stet-Error"); got != c.reason || w.Header().Get("Stet-Error-Class") == "" {
			t.Errorf("%s %s %s: reason %q of class %q, want %q", c.method, c.target, c.body, got, w.Header().Get("Stet-Error-Class"), c.reason)
		}
	}
}

// What a subscription stores is counted, also if the request does not say how long it is.
func TestSubscriptionsAreCounted(t *testing.T) {
	s := newControl(t)
	var counted int64
	s.serve(&streams.Options{Count: func(_ context.Context, n int64) (func(), error) {
		counted += n
		return func() {}, nil
	}}, nil)
	for _, c := range []struct{ method, target, body string }{
		{"PUT", "/v1/stream/__ds/subscriptions/s", `{"type":"pull-wake","pattern":"a/*","wake_stream":"wakes"}`},
		{"POST", "/v1/stream/__ds/subscriptions/s/streams", `{"streams":["b"]}`},
	} {
		counted = 0
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.target, io.MultiReader(strings.NewReader(c.body)))
		r.ContentLength = -1
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code/100 != 2 || counted != int64(len(c.body)) {
			t.Errorf("%s %s: %d, counted %d bytes of %d: %s", c.method, c.target, w.Code, counted, len(c.body), w.Body)
		}
	}
}

// After a restart due work resumes with the first request, even if its peer is gone.
func TestDueWorkResumesWithARequestThatEnds(t *testing.T) {
	s := newControl(t)
	s.serve(&streams.Options{}, func() time.Time { return time.Now().Add(-time.Hour) }) // its leases are over
	s.want(s.do("PUT", "/v1/stream/wakes", "", "Content-Type", "text/plain"), 201)
	s.want(s.do("PUT", "/v1/stream/__ds/subscriptions/s", `{"type":"pull-wake","pattern":"a/*","wake_stream":"wakes"}`), 201)
	s.want(s.do("PUT", "/v1/stream/a/1", "one", "Content-Type", "text/plain"), 201)
	s.want(s.do("POST", "/v1/stream/__ds/subscriptions/s/claim", `{"worker":"w1"}`), 200)
	wakes := func() int {
		return strings.Count(s.want(s.do("GET", "/v1/stream/wakes", ""), 200).Body.String(), `"type":"wake"`)
	}
	if n := wakes(); n != 1 {
		t.Fatalf("%d wakes before the restart, want 1", n)
	}
	s.serve(&streams.Options{}, nil)
	gone, leave := context.WithCancel(t.Context())
	leave()
	s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "GET", "/v1/stream/__ds/jwks.json", nil))
	for until := time.Now().Add(10 * time.Second); wakes() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the wake whose lease is over has not begun again")
		}
	}
}

// The address of a webhook may hold a secret, so errors about it, which are logged, name
// only the subscription.
func TestErrorsOfWebhooksDoNotNameTheAddress(t *testing.T) {
	s := newControl(t)
	noted := make(chan error, 100)
	s.serve(&streams.Options{LocalHooks: true, Note: func(err error) { noted <- err }}, nil)
	s.want(s.do("PUT", "/v1/stream/__ds/subscriptions/s", `{"type":"webhook","pattern":"a/*","webhook":{"url":"http://127.0.0.1:1/in/hidden?key=hidden"}}`), 201)
	s.want(s.do("PUT", "/v1/stream/a/1", "one", "Content-Type", "text/plain"), 201)
	if err := <-noted; strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "subscription s") {
		t.Errorf("noted: %v", err)
	}
}

// Due work resumes with a later request if the rows could not be read at the first one.
func TestDueWorkResumesAfterAFailure(t *testing.T) {
	s := newControl(t)
	rows := &failing{Store: s.rows.Store}
	s.rows.Store = rows
	s.serve(&streams.Options{}, func() time.Time { return time.Now().Add(-time.Hour) }) // its leases are over
	s.want(s.do("PUT", "/v1/stream/wakes", "", "Content-Type", "text/plain"), 201)
	s.want(s.do("PUT", "/v1/stream/__ds/subscriptions/s", `{"type":"pull-wake","pattern":"a/*","wake_stream":"wakes"}`), 201)
	s.want(s.do("PUT", "/v1/stream/a/1", "one", "Content-Type", "text/plain"), 201)
	s.want(s.do("POST", "/v1/stream/__ds/subscriptions/s/claim", `{"worker":"w1"}`), 200)
	s.serve(&streams.Options{}, nil)
	rows.fail.Store(true)
	s.want(s.do("GET", "/v1/stream/__ds/jwks.json", ""), 500)
	rows.fail.Store(false)
	s.want(s.do("GET", "/v1/stream/__ds/jwks.json", ""), 200)
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		wakes := s.want(s.do("GET", "/v1/stream/wakes", ""), 200).Body.String()
		if strings.Count(wakes, `"type":"wake"`) == 2 {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the wake whose lease is over has not begun again")
		}
	}
}

// failing are rows that sometimes cannot be scanned.
type failing struct {
	kv.Store
	fail atomic.Bool
}

func (f *failing) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	if f.fail.Load() {
		return func(yield func(kv.Row, error) bool) { yield(kv.Row{}, errors.New("the rows cannot be read")) }
	}
	return f.Store.Scan(ctx, in, opts)
}
