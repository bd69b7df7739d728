package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/stet-dev/stet/access"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func audited(t *testing.T, log *access.Audit) []string {
	t.Helper()
	var got []string
	err := log.Records(func(r access.Record) error {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Phase, r.Tenant, r.Action[strings.LastIndexByte(r.Action, '/')+1:], r.Target, r.Result))
		if len(r.Keys) > 0 {
			line += " " + fmt.Sprint(r.Keys)
		}
		got = append(got, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWhatIsTakenAwayIsAudited(t *testing.T) {
	log := access.OpenAudit(filepath.Join(t.TempDir(), access.AuditName), nil)
	h := newHouse(t, &server.Options{Audit: log})
	hc, base := h.client("a", access.Admin).HTTP()
	conversations := stetv1connect.NewConversationServiceClient(hc, base)
	rows := stetv1connect.NewRowServiceClient(hc, base)
	store := stetv1connect.NewStoreServiceClient(hc, base)
	call(t, conversations.Create, &stetv1.CreateConversationRequest{Id: "c1"})
	call(t, conversations.List, &stetv1.ListConversationsRequest{})
	call(t, rows.Commit, &stetv1.CommitRequest{Set: []*stetv1.Row{{Key: []byte("x"), Value: []byte("x")}}})
	call(t, store.Collect, &stetv1.CollectRequest{DryRun: true})
	const first = "note a Create first use of the token from this address ok"
	if got := audited(t, log); !slices.Equal(got, []string{first}) {
		t.Errorf("what takes nothing away is in the log: %q", got)
	}
	call(t, conversations.Delete, &stetv1.DeleteConversationRequest{Id: "c1"})
	refuse(t, conversations.Delete, &stetv1.DeleteConversationRequest{Id: "c1"}, connect.CodeNotFound)
	call(t, rows.Commit, &stetv1.CommitRequest{Set: []*stetv1.Row{{Key: []byte("x"), Value: []byte("y")}, {Key: []byte("y\n\x1b"), Value: []byte("y")}}})
	call(t, rows.Commit, &stetv1.CommitRequest{DeleteRange: []*stetv1.KeyRange{{Start: []byte("x"), End: []byte("z")}}})
	call(t, store.Collect, &stetv1.CollectRequest{GraceSeconds: 7})
	refuse(t, stetv1connect.NewCheckpointServiceClient(hc, base).Undo, &stetv1.UndoRequest{Workspace: "/nowhere"}, connect.CodePermissionDenied)
	want := []string{
		first,
		"begin a Delete conversation c1", "end a Delete conversation c1 ok",
		"begin a Delete conversation c1", "end a Delete conversation c1 not_found",
		"begin a Commit 1 rows overwritten or removed", `keys a Commit 1 rows overwritten or removed [x]`,
		"end a Commit 1 rows overwritten or removed ok",
		"begin a Commit 2 rows overwritten or removed", `keys a Commit 2 rows overwritten or removed [x y\n\x1b]`,
		"end a Commit 2 rows overwritten or removed ok",
		"begin a Collect grace 7 s", "end a Collect grace 7 s ok",
		"begin a Undo workspace /nowhere", "end a Undo workspace /nowhere permission_denied",
	}
	if got := audited(t, log); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Refused calls are in the log, but nobody without a token can fill the disk with
// them.
func TestRefusedCallsAreAudited(t *testing.T) {
	log := access.OpenAudit(filepath.Join(t.TempDir(), access.AuditName), nil)
	h := newHouse(t, &server.Options{Audit: log})
	hc, base := h.client("a", access.Read).HTTP()
	refuse(t, stetv1connect.NewConversationServiceClient(hc, base).Delete, &stetv1.DeleteConversationRequest{Id: "c1"}, connect.CodePermissionDenied)
	for range 500 {
		if got := status(t, "POST", h.address, "/stet.v1.ConversationService/Delete", nil); got != 401 {
			t.Fatalf("status %d", got)
		}
	}
	got := audited(t, log)
	if want := []string{"note a Delete first use of the token from this address ok", "note a Delete refused permission_denied", "note  Delete refused unauthenticated"}; !slices.Equal(got[:3], want) {
		t.Errorf("the log begins with %q, want %q", got[:3], want)
	}
	if len(got) > 400 {
		t.Errorf("the log has %d lines", len(got))
	}
	if n, err := log.Verify(); err != nil || n != len(got) {
		t.Errorf("%d lines, %v", n, err)
	}
}

// What writes raw rows could replace anything of the tenant's: no token for saving
// conversations allows it.
func TestRawRowsNeedTheAdminScope(t *testing.T) {
	h := newHouse(t, nil)
	hc, base := h.client("a", access.Write).HTTP()
	rows := stetv1connect.NewRowServiceClient(hc, base)
	refuse(t, rows.Commit, &stetv1.CommitRequest{Set: []*stetv1.Row{{Key: []byte("x"), Value: []byte("x")}}}, connect.CodePermissionDenied)
	refuse(t, rows.Commit, &stetv1.CommitRequest{DeleteRange: []*stetv1.KeyRange{{Start: []byte("a"), End: []byte("z")}}}, connect.CodePermissionDenied)
	call(t, rows.Scan, &stetv1.ScanRowsRequest{})
}

// What cannot be noted is not done.
func TestNothingIsTakenAwayUnseen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	h := newHouse(t, &server.Options{Audit: access.OpenAudit(filepath.Join(dir, access.AuditName), nil)})
	hc, base := h.client("a", access.Admin).HTTP()
	conversations := stetv1connect.NewConversationServiceClient(hc, base)
	call(t, conversations.Create, &stetv1.CreateConversationRequest{Id: "c1"})
	said := refuse(t, conversations.Delete, &stetv1.DeleteConversationRequest{Id: "c1"}, connect.CodeUnavailable)
	if !strings.Contains(said, "audit") || strings.Contains(said, dir) {
		t.Errorf("the refusal says %q", said)
	}
	call(t, conversations.Get, &stetv1.GetConversationRequest{Id: "c1"})
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	call(t, conversations.Delete, &stetv1.DeleteConversationRequest{Id: "c1"})
}

// A token is sent in every way that people send tokens, right ones and wrong
// ones; it must come back nowhere.
func TestTokensShowNowhere(t *testing.T) {
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	audit := access.OpenAudit(filepath.Join(t.TempDir(), access.AuditName), nil)
	h := newHouse(t, &server.Options{
		Token: token, Audit: audit, Logger: slog.New(slog.NewJSONHandler(log, nil)), Limits: access.Limits{Bytes: 1 << 10},
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)), Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	})
	canary := h.token("a", access.Admin)
	wrong := canary[:len(canary)-4] + "0000"
	secrets := []string{strings.Split(canary, "_")[2], strings.Split(canary, "_")[2][:32], token}
	seen := &bytes.Buffer{} // everything that came back
	try := func(method, path, body string, header ...string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, h.address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := res.Header.Write(seen); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(seen, res.Body); err != nil {
			t.Fatal(err)
		}
	}
	const list, del = "/stet.v1.ConversationService/List", "/stet.v1.ConversationService/Delete"
	for _, secret := range []string{canary, wrong} {
		try("POST", list, "{}", "Authorization", "Bearer "+secret)
		try("POST", list, "{}", "Authorization", secret)
		try("POST", list, "{}", "Authorization", "Basic "+secret)
		try("POST", list, "{}", "Cookie", "stet="+secret)
		try("POST", list+"?token="+secret, "{}")
		try("GET", "/?token="+secret, "")
		try("GET", "/"+secret, "", "Authorization", "Bearer "+canary)
		try("GET", "/c/none?"+secret, "", "Authorization", "Bearer "+canary)
		try("POST", "/stet.v1."+secret+"/List", "{}", "Authorization", "Bearer "+canary)
		try("POST", "/login", "token="+secret, "Content-Type", "application/x-www-form-urlencoded")
		try("POST", del, `{"id":"none"}`, "Authorization", "Bearer "+secret)
		try("POST", "/stet.v1.ConversationService/Create", `{"title":"`+strings.Repeat("x", 4000)+`"}`, "Authorization", "Bearer "+secret)
		try("POST", list, "{}", "Authorization", "Bearer "+secret, "X-Request-Id", secret, "User-Agent", secret, "Traceparent", secret)
	}
	try("GET", "/metrics", "", "Authorization", "Bearer "+token)
	places := map[string]string{"what came back": seen.String(), "the log": log.String()}
	err = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		places[path] = string(data)
		return err
	})
	data, readErr := os.ReadFile(audit.Path())
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	places["the audit log"] = string(data)
	for place, text := range places {
		if text == "" && !strings.HasSuffix(place, ".lock") && !strings.HasSuffix(place, "-wal") {
			t.Errorf("%s is empty", place)
		}
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds a token", place)
			}
		}
	}
	for _, want := range []string{`"path":"/stet.v1.ConversationService/List"`, `"tenant":"a"`, `"request":"`, `"code":"unauthenticated"`, `"code":"not_found"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if !strings.Contains(seen.String(), "stet_server_refused_total") {
		t.Error("the metrics say nothing of refusals")
	}
}
