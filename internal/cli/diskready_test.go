package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/access"
)

func TestReadyKnowsAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := (&diskReady{dir: dir, create: os.CreateTemp}).check(t.Context()); err != nil {
		t.Errorf("a disk with room: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	full.Close()
	create := func(string, string) (*os.File, error) {
		link := filepath.Join(dir, "full") // so that it can be removed
		if err := os.Symlink("/dev/full", link); err != nil {
			return nil, err
		}
		return os.OpenFile(link, os.O_WRONLY, 0)
	}
	if err := (&diskReady{dir: dir, create: create}).check(t.Context()); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("a full disk: %v", err)
	}
	if err := (&diskReady{dir: filepath.Join(dir, "gone"), create: os.CreateTemp}).check(t.Context()); err == nil {
		t.Error("a directory that is gone is ready")
	}
}

// A server whose tokens cannot be read refuses every call of a tenant.
func TestReadyReadsTheTokens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, access.TokensName)
	tokens := access.OpenTokens(path)
	if _, _, err := tokens.Create(access.Grant{Tenant: "a", Scope: access.Read}); err != nil {
		t.Fatal(err)
	}
	ready := func() error {
		return (&diskReady{dir: dir, create: os.CreateTemp, tokens: tokens}).check(t.Context())
	}
	if err := ready(); err != nil {
		t.Errorf("with tokens: %v", err)
	}
	if err := os.WriteFile(path, []byte("{damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ready(); err == nil || err.Error() != "the tokens cannot be read" {
		t.Errorf("with damaged tokens: %v", err)
	}
}

// The runtime and the process are among the metrics.
func TestMetricsOfTheProcess(t *testing.T) {
	handler, err := exposeMetrics()
	if err != nil {
		t.Fatal(err)
	}
	body := fetchMetrics(t, handler)
	for _, name := range []string{"go_goroutines", "go_memstats_heap_inuse_bytes", "process_resident_memory_bytes", "process_open_fds"} {
		if !strings.Contains(body, "\n"+name+" ") {
			t.Errorf("no %s in the metrics", name)
		}
	}
}

func fetchMetrics(t *testing.T, handler http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
