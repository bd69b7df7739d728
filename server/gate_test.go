package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/server"
)

// A call in plain JSON is refused in JSON, with or without the header of the protocol. What
// is not a call is refused in text.
func TestRefusalsAreInTheFormOfTheRequest(t *testing.T) {
	h := newHouse(t, nil)
	read := h.token("a", access.Read)
	for _, test := range []struct {
		method, path, token string
		status              int
		code                string
	}{
		{http.MethodPost, "/stet.v1.StoreService/Info", "", http.StatusUnauthorized, "unauthenticated"},
		{http.MethodPost, "/stet.v1.StoreService/Info", "wrong", http.StatusUnauthorized, "unauthenticated"},
		{http.MethodPost, "/stet.v1.ConversationService/Create", read, http.StatusForbidden, "permission_denied"},
		{http.MethodPost, "/v1/stream/a", "", http.StatusUnauthorized, ""},
		{http.MethodPost, "/v1/stream/a", read, http.StatusForbidden, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, h.address+test.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if test.token != "" {
			req.Header.Set("Authorization", "Bearer "+test.token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Code, Message string }
		err = json.NewDecoder(res.Body).Decode(&said)
		res.Body.Close()
		if res.StatusCode != test.status || said.Code != test.code || (err == nil) != (test.code != "") {
			t.Errorf("%s %s: %d %+v, %v, want %d %s", test.method, test.path, res.StatusCode, said, err, test.status, test.code)
		}
	}
}

// If the tokens cannot be read, the operator learns why, and no caller does.
func TestUnreadableTokensAreLogged(t *testing.T) {
	log := &lines{}
	reader := sdkmetric.NewManualReader()
	h := newHouse(t, &server.Options{
		Logger:        slog.New(slog.NewTextHandler(log, nil)),
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	read := h.token("a", access.Read)
	if err := os.WriteFile(filepath.Join(h.dir, access.TokensName), []byte("{damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := h.ask(read, "/stet.v1.StoreService/Info", "{}")
	if got.status != http.StatusServiceUnavailable || strings.Contains(got.body, h.dir) {
		t.Errorf("got %+v", got)
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR msg=\"cannot check tokens\"") || !strings.Contains(text, access.TokensName) {
		t.Errorf("the log has\n%s", text)
	}
	if n := counted(t, reader, "stet.server.refused", attribute.String("tenant", ""), attribute.String("reason", "tokens-unreadable")); n != 1 {
		t.Errorf("%d calls are counted", n)
	}
}

// A request whose peer is gone is no failure of the server, and is not logged as one.
func TestRequestsThatEndEarlyAreNoFailures(t *testing.T) {
	h := newHouse(t, nil)
	token := h.token("shop", access.Read)
	if status, _, text := h.stream(h.token("shop", access.Write), "PUT", "a", "one"); status != 201 {
		t.Fatal(status, text)
	}
	var log bytes.Buffer
	srv, err := server.NewTenants(h.stores, h.tokens.Verify, &server.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	gone, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(gone, "GET", "http://localhost/v1/stream/a", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	srv.ServeHTTP(httptest.NewRecorder(), r)
	if line := log.String(); !strings.Contains(line, `"status":499`) || !strings.Contains(line, `"code":"canceled"`) {
		t.Errorf("logged %s", line)
	}
}
