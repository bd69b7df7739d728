package streams_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/server/streams"
	"github.com/stet-dev/stet/stream"
)

// site serves the streams of a store in memory.
type site struct {
	*stream.Store
	t       *testing.T
	rows    *watched
	handler http.Handler
}

func newSite(t *testing.T, opts *streams.Options) *site {
	blobs := memblob.New()
	s := &site{t: t, rows: &watched{memkv.New(blobs), func() {}}}
	s.Store = stream.New(blobs, s.rows, nil)
	s.handler = streams.New(s.Store, opts)
	return s
}

// do makes a request; headers are pairs of a name and a value.
func (s *site) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// want fails the test unless the answer has a status.
func (s *site) want(w *httptest.ResponseRecorder, status int) *httptest.ResponseRecorder {
	s.t.Helper()
	if w.Code != status {
		s.t.Fatalf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	return w
}

func TestErrorsHaveTheStatusOfTheProtocolAndAReason(t *testing.T) {
	s := newSite(t, nil)
	text := []string{"Content-Type", "text/plain"}
	s.want(s.do("PUT", "/v1/stream/s", "one", text...), 201)
	s.want(s.do("PUT", "/v1/stream/closed", "all", "Content-Type", "text/plain", "Stream-Closed", "TRUE"), 201)
	s.want(s.do("PUT", "/v1/stream/source", "one", text...), 201)
	s.want(s.do("PUT", "/v1/stream/fork", "", "Stream-Forked-From", "/v1/stream/source"), 201)
	s.want(s.do("DELETE", "/v1/stream/source", ""), 204)
	s.want(s.do("POST", "/v1/stream/s", "two", "Content-Type", "text/plain", "Producer-Id", "p", "Producer-Epoch", "1", "Producer-Seq", "0"), 200)
	for _, c := range []struct {
		method, target, body string
		headers              []string
		status               int
		reason               string
	}{
		{"GET", "/v1/stream/none", "", nil, 404, "stream-not-found"},
		{"GET", "/v1/stream/", "", nil, 400, "invalid-stream"},
		{"GET", "/v1/stream/" + strings.Repeat("x", stream.MaxPath+1), "", nil, 400, "invalid-stream"},
		{"GET", "/v1/stream/__ds/none", "", nil, 404, "subscription-not-found"},
		{"GET", "/v1/stream/s?live=other&offset=-1", "", nil, 400, "bad-request"},
		{"GET", "/v1/stream/s?offset=0000000000000007_0000000000000700", "", nil, 400, "invalid-stream-offset"},
		{"HEAD", "/v1/stream/source", "", nil, 410, "stream-gone"},
		{"PUT", "/v1/stream/source", "", text, 409, "stream-gone"},
		{"PUT", "/v1/stream/f2", "", []string{"Stream-Forked-From", "/v1/stream/source"}, 409, "stream-gone"},
		{"PUT", "/v1/stream/f2", "", []string{"Stream-Forked-From", "/elsewhere/s"}, 400, "bad-request"},
		{"PUT", "/v1/stream/f2", "", []string{"Stream-Fork-Offset", "0000000000000000_0000000000000000"}, 400, "bad-request"},
		{"PUT", "/v1/stream/n", "", []string{"Stream-TTL", "99999999999999999999"}, 400, "bad-request"},
		{"PUT", "/v1/stream/n", "", []string{"Stream-TTL", "9999999999999999999"}, 400, "invalid-stream"},
		{"PUT", "/v1/stream/n", strings.Repeat("x", stream.MaxAppend+1), text, 413, "append-too-large"},
		{"POST", "/v1/stream/closed", "more", text, 409, "stream-closed"},
		{"POST", "/v1/stream/s", "x", []string{"Content-Type", "text/plain", "Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0"}, 403, "producer-fenced"},
		{"POST", "/v1/stream/s", "x", []string{"Content-Type", "text/plain", "Producer-Id", "p", "Producer-Epoch", "1", "Producer-Seq", "2"}, 409, "producer-gap"},
		{"POST", "/v1/stream/s", "x", []string{"Content-Type", "text/plain", "Producer-Id", "p", "Producer-Epoch", "9007199254740992", "Producer-Seq", "0"}, 400, "invalid-stream"},
		{"PATCH", "/v1/stream/s", "", nil, 405, "unknown-method"},
		{"PUT", "/v1/stream/n", "x", []string{"Content-Type", "text/plain", "Content-Encoding", "gzip"}, 415, "content-encoding"},
		{"POST", "/v1/stream/s", "x", []string{"Content-Type", "text/plain", "Content-Encoding", "identity, br"}, 415, "content-encoding"},
	} {
		if w := s.do(c.method, c.target, c.body, c.headers...); w.Code != c.status {
			t.Errorf("%s %.40s %v: %d, want %d: %s", c.method, c.target, c.headers, w.Code, c.status, w.Body)
		} else if got := w.Header().Get("Stet-Error"); got != c.reason || w.Header().Get("Stet-Error-Class") == "" {
			t.Errorf("%s %.40s %v: reason %q of class %q, want %q", c.method, c.target, c.headers, got, w.Header().Get("Stet-Error-Class"), c.reason)
		}
	}
}

// A producer whose append is refused learns where its stream stands, and what it can do.
func TestProducersLearnWhatToDo(t *testing.T) {
	s := newSite(t, nil)
	text := func(epoch, seq string) []string {
		return []string{"Content-Type", "text/plain", "Producer-Id", "p", "Producer-Epoch", epoch, "Producer-Seq", seq}
	}
	s.want(s.do("PUT", "/v1/stream/s", "", "Content-Type", "text/plain"), 201)
	s.want(s.do("POST", "/v1/stream/s", "one", text("7", "0")...), 200)
	fenced := s.want(s.do("POST", "/v1/stream/s", "two", text("3", "1")...), 403)
	if got, want := fenced.Body.String(), "its current epoch is 7 and this append has epoch 3, so another writer has taken over; "+
		"stop writing, or take over again with a greater epoch, from append 0 on"; !strings.Contains(got, want) || fenced.Header().Get("Producer-Epoch") != "7" {
		t.Errorf("it says %q, %v", got, fenced.Header())
	}
	s.want(s.do("POST", "/v1/stream/s", "two", text("8", "0")...), 200) // what it advises works
	gap := s.want(s.do("POST", "/v1/stream/s", "four", text("8", "2")...), 409)
	if got, want := gap.Body.String(), "epoch 8 expects append 1, append 2 came; send append 1 first"; !strings.Contains(got, want) {
		t.Errorf("it says %q", got)
	}
}

// What is compressed is refused, because readers would get the compressed bytes as text.
// No encoding has a name, too.
func TestEncodedBodiesAreRefused(t *testing.T) {
	s := newSite(t, nil)
	s.want(s.do("PUT", "/v1/stream/s", "one", "Content-Type", "text/plain", "Content-Encoding", "Identity"), 201)
	w := s.want(s.do("POST", "/v1/stream/s", "\x1f\x8b", "Content-Type", "text/plain", "Content-Encoding", "gzip"), 415)
	if got := w.Body.String(); !strings.Contains(got, `Content-Encoding is "gzip"; send the body as it is`) || w.Header().Get("Accept-Encoding") != "identity" {
		t.Errorf("it says %q, %v", got, w.Header())
	}
	if w := s.want(s.do("GET", "/v1/stream/s", ""), 200); w.Body.String() != "one" {
		t.Errorf("it has %q", w.Body)
	}
}

// A request that ends while it waits is answered: a server that stops ends it this way.
func TestLiveReadsEndWithTheirRequest(t *testing.T) {
	s := newSite(t, nil)
	s.want(s.do("PUT", "/v1/stream/s", "one", "Content-Type", "text/plain"), 201)
	ctx, cancel := context.WithCancel(t.Context())
	s.rows.watched = cancel
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/v1/stream/s?offset=now&live=long-poll", nil))
	if w.Code != 204 || w.Header().Get("Stream-Next-Offset") != "0000000000000001_0000000000000003" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// watched calls a function when a reader begins to wait.
type watched struct {
	kv.Store
	watched func()
}

func (w *watched) Watch(ctx context.Context, in kv.Range) <-chan struct{} {
	defer w.watched()
	return w.Store.Watch(ctx, in)
}

// Lines of a text stay lines of one event, whatever they begin with.
func TestTextIsOneEvent(t *testing.T) {
	s := newSite(t, nil)
	const content = " a\r\n\n\rdata: b\nevent: control\n"
	s.want(s.do("PUT", "/v1/stream/s", content, "Content-Type", "text/plain", "Stream-Closed", "true"), 201)
	w := s.want(s.do("GET", "/v1/stream/s?offset=-1&live=sse", ""), 200)
	var names, lines []string
	in := bufio.NewScanner(w.Body)
	for in.Scan() {
		if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			names = append(names, name)
		}
		if line, ok := strings.CutPrefix(in.Text(), "data:"); ok && len(names) == 1 {
			lines = append(lines, strings.TrimPrefix(line, " "))
		}
	}
	if got, want := strings.Join(names, " "), "data control"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if got, want := strings.Join(lines, "\n"), " a\n\n\ndata: b\nevent: control\n"; got != want {
		t.Errorf("the data is %q, want %q", got, want)
	}
}

// An event stream says the same place again while nothing comes, and ends after its time.
func TestEventStreamsEndAfterTheirTime(t *testing.T) {
	s := newSite(t, &streams.Options{Wait: time.Millisecond, Lasting: 20 * time.Millisecond})
	s.want(s.do("PUT", "/v1/stream/s", "", "Content-Type", "application/json"), 201)
	w := s.want(s.do("GET", "/v1/stream/s?offset=-1&live=sse", ""), 200)
	if n := strings.Count(w.Body.String(), "event: control"); n < 2 {
		t.Errorf("%d control events: %s", n, w.Body)
	}
}

// What is unexpected is left to the server around the handler, and what is stored is
// counted before it is.
func TestOptionsAreAsked(t *testing.T) {
	var counted int64
	var removed []string
	s := newSite(t, &streams.Options{
		Count: func(_ context.Context, n int64) (func(), error) {
			if counted += n; counted > 10 {
				return nil, io.ErrShortBuffer
			}
			return func() {}, nil
		},
		Remove: func(_ context.Context, what string, do func() error) error {
			removed = append(removed, what)
			return do()
		},
		Fail: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		},
	})
	s.want(s.do("PUT", "/v1/stream/s", "12345", "Content-Type", "text/plain"), 201)
	s.want(s.do("POST", "/v1/stream/s", "123456", "Content-Type", "text/plain"), 429)
	if w := s.want(s.do("GET", "/v1/stream/s", ""), 200); w.Body.String() != "12345" {
		t.Errorf("it has %q", w.Body)
	}
	s.want(s.do("DELETE", "/v1/stream/s", ""), 204)
	if len(removed) != 1 || removed[0] != "stream s" {
		t.Errorf("removed %q", removed)
	}
}
