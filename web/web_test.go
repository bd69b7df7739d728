package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stet-dev/stet/web"
)

// get returns the answer of a handler.
func get(t *testing.T, h http.Handler, path string, header map[string]string) *http.Response {
	t.Helper()
	req := httptest.NewRequest("GET", path, nil)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEveryViewIsTheSamePage(t *testing.T) {
	mux := http.NewServeMux()
	for _, pattern := range web.Patterns() {
		mux.Handle("GET "+pattern, web.Handler())
	}
	first := ""
	for _, path := range []string{
		"/", "/c/abc", "/c/a%2Fb/diff", "/c/abc/files?at=1", "/live/x", "/inspect/00ff?kind=turn", "/compare?from=a", "/search?q=x", "/storage", "/operations",
	} {
		res := get(t, mux, path, nil)
		text := body(t, res)
		if first == "" {
			first = text
		}
		if res.StatusCode != 200 || text != first || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: status %d, %d bytes, header %v", path, res.StatusCode, len(text), res.Header)
		}
	}
	if res := get(t, mux, "/other", nil); res.StatusCode != 404 {
		t.Errorf("an address that is no view: status %d", res.StatusCode)
	}
}

// The policy of the server allows no script and no style in the document itself,
// and nothing from elsewhere.
func TestDocumentFitsThePolicy(t *testing.T) {
	inline := regexp.MustCompile(`(?is)<script(?:\s[^>]*)?>\s*[^<\s]|<style|\sstyle=|\son[a-z]+=|https?://`)
	text := body(t, get(t, web.Handler(), "/", nil))
	if found := inline.FindString(text); found != "" {
		t.Errorf("the page holds %q", found)
	}
	for _, src := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if res := get(t, web.Assets(), src[1], nil); res.StatusCode != 200 {
			t.Errorf("the page refers to %s: status %d", src[1], res.StatusCode)
		}
	}
}

func TestAssetsAreCompressedAndRevalidated(t *testing.T) {
	plain := get(t, web.Assets(), "/assets/app.js", nil)
	want := body(t, plain)
	packed := get(t, web.Assets(), "/assets/app.js", map[string]string{"Accept-Encoding": "gzip, br"})
	if packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("header %v", packed.Header)
	}
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != want || want == "" {
		t.Errorf("%d bytes, error %v; want %d bytes", len(got), err, len(want))
	}
	tag := plain.Header.Get("ETag")
	if res := get(t, web.Assets(), "/assets/app.js", map[string]string{"If-None-Match": tag}); res.StatusCode != 304 || tag == "" {
		t.Errorf("tag %q: status %d", tag, res.StatusCode)
	}
	for _, path := range []string{"/assets/", "/assets/none.js", "/assets/../web.go"} {
		if res := get(t, web.Assets(), path, nil); res.StatusCode != 404 {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
	}
}

// maxFirstLoad is what a browser needs before it shows the first view.
const maxFirstLoad = 110 << 10

func TestFirstLoadIsSmall(t *testing.T) {
	page := body(t, get(t, web.Handler(), "/", nil))
	total := len(page)
	for _, src := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		res := get(t, web.Assets(), src[1], map[string]string{"Accept-Encoding": "gzip"})
		n := len(body(t, res))
		t.Logf("%s: %d bytes", strings.TrimPrefix(src[1], "/assets/"), n)
		total += n
	}
	if total > maxFirstLoad {
		t.Errorf("%d bytes, compressed; at most %d are allowed", total, maxFirstLoad)
	}
	t.Logf("first load: %d bytes", total)
}

// A person whose address leads nowhere gets the page, which says so; a program sees 404.
func TestAnAddressThatLeadsNowhere(t *testing.T) {
	res := get(t, web.Missing(), "/no/such/page", nil)
	if res.StatusCode != 404 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%s, %s", res.Status, res.Header.Get("Content-Type"))
	}
}
