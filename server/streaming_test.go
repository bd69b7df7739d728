package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/server"
)

// stream makes a request for a stream and returns its answer, read.
func (h *house) stream(token, method, path, body string) (status int, header http.Header, text string) {
	h.t.Helper()
	return requestStream(h.t, h.address, token, method, path, body)
}

func requestStream(t *testing.T, address, token, method, path, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address+"/v1/stream/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "text/plain")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(out)
}

func TestStreamsNeedATokenAndItsScope(t *testing.T) {
	h := newHouse(t, nil)
	writer, reader, other := h.token("shop", access.Write), h.token("shop", access.Read), h.token("mill", access.Write)
	for _, c := range []struct {
		name, token, method, path, body string
		status                          int
	}{
		{"without a token", "", "PUT", "a", "", 401},
		{"with a wrong token", "stet_none", "GET", "a", "", 401},
		{"create with read", reader, "PUT", "a", "", 403},
		{"create", writer, "PUT", "a", "one", 201},
		{"append with read", reader, "POST", "a", "two", 403},
		{"append", writer, "POST", "a", "two", 204},
		{"read", reader, "GET", "a", "", 200},
		{"describe", reader, "HEAD", "a", "", 200},
		{"the stream of another tenant", other, "GET", "a", "", 404},
		{"a fork of it", other, "PUT", "a", "", 201},
		{"delete with read", reader, "DELETE", "a", "", 403},
		{"follow without a token", "", "GET", "a?offset=-1&live=sse", "", 401},
		{"what a browser may send", "", "OPTIONS", "a", "", 204},
	} {
		if status, _, text := h.stream(c.token, c.method, c.path, c.body); status != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, status, c.status, text)
		}
	}
	if _, _, text := h.stream(reader, "GET", "a", ""); text != "onetwo" {
		t.Errorf("the stream has %q", text)
	}
}

func TestStreamsAreLimitedAndAudited(t *testing.T) {
	log := access.OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), nil)
	h := newHouse(t, &server.Options{Limits: access.Limits{Bytes: 2 << 20}, Audit: log})
	writer := h.token("shop", access.Write)
	large := string(random(1, 3<<20))
	if status, _, _ := h.stream(writer, "PUT", "a", "one"); status != 201 {
		t.Fatal(status)
	}
	if status, head, text := h.stream(writer, "POST", "a", large); status != 429 || head.Get("Retry-After") == "" {
		t.Errorf("an append beyond the limit: %d %v %s", status, head, text)
	}
	if status, _, text := h.stream(writer, "GET", "a", ""); status != 200 || text != "one" {
		t.Errorf("%d %s", status, text)
	}
	if status, _, _ := h.stream(writer, "DELETE", "a", ""); status != 204 {
		t.Error(status)
	}
	lines := strings.Join(audited(t, log), "\n")
	if want := "stream a ok"; !strings.Contains(lines, want) {
		t.Errorf("the audit log has no %q:\n%s", want, lines)
	}
}

// A waiting reader whose token is revoked learns that, and not that nothing came. A
// reader of events is disconnected, and learns it when it connects again.
func TestWaitingReadersOfStreamsEndWithTheirTokens(t *testing.T) {
	h := newHouse(t, &server.Options{StreamWait: time.Minute})
	if status, _, text := h.stream(h.token("shop", access.Write), "PUT", "a", "one"); status != 201 {
		t.Fatal(status, text)
	}
	// revoked reads until its token is revoked, which is after a while.
	revoked := func(live string, after time.Duration) (int, http.Header, string) {
		reader, info, err := h.tokens.Create(access.Grant{Tenant: "shop", Scope: access.Read})
		if err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(after, func() {
			if _, err := h.tokens.Revoke(info.ID); err != nil {
				t.Error(err)
			}
		}).Stop()
		return h.stream(reader, "GET", "a?offset=now&live="+live, "")
	}
	for live, want := range map[string]int{"long-poll": 401, "sse": 200} {
		after := 50 * time.Millisecond
		status, head, text := revoked(live, after)
		for strings.Contains(text, "a valid token is required") && after < 10*time.Second { // it had not begun to wait
			after *= 4
			status, head, text = revoked(live, after)
		}
		if status != want {
			t.Errorf("%s: %d, want %d: %s", live, status, want, text)
		}
		if want == 401 && (!strings.Contains(text, "revoked") || head.Get("WWW-Authenticate") == "" || head.Get("Stream-Next-Offset") != "") {
			t.Errorf("%s: it says %q, %v", live, text, head)
		}
	}
}

// Readers that wait get a proper answer when the server stops.
func TestWaitingReadersOfStreamsEndWhenTheServerStops(t *testing.T) {
	s := &running{t: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	s.start()
	base := "http://" + s.address
	if status, _, text := requestStream(t, base, token, "PUT", "a", "one"); status != 201 {
		t.Fatal(status, text)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", base+"/v1/stream/a?offset=-1&live=sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len("event: data"))
	if _, err := io.ReadFull(res.Body, first); err != nil { // it is open
		t.Fatal(err)
	}
	s.stop()
	rest, err := io.ReadAll(res.Body)
	if err != nil || !strings.HasSuffix(string(rest), "\n\n") {
		t.Errorf("the stream ended with %v after %q", err, rest)
	}
}

// A live read that comes while the server stops gets what is there, or is told to try
// again. Which it is depends on how far the read was; so there are many.
func TestReadersOfStreamsAreSentAwayWhileTheServerStops(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	handler, err := server.New(db, &server.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	drain, stop := context.WithCancel(t.Context())
	do := func(method, query string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(server.WithDrain(t.Context(), drain), method, "http://127.0.0.1/v1/stream/a"+query, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	if w := do("PUT", ""); w.Code != http.StatusCreated {
		t.Fatal(w.Code, w.Body)
	}
	stop()
	for i := range 200 {
		live, proper := "long-poll", http.StatusNoContent
		if i%2 == 0 {
			live, proper = "sse", http.StatusOK
		}
		w := do("GET", "?offset=-1&live="+live)
		if w.Code != proper && (w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "try again")) {
			t.Fatalf("%s: %d %s", live, w.Code, w.Body)
		}
	}
}
