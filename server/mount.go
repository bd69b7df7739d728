package server

import (
	"net/http"
	"strings"

	"github.com/stet-dev/stet/web"
)

// mountPage adds the addresses of the page. Its files hold no user data, so they need
// no token; the page asks for a token and sends it with every call.
func mountPage(root *http.ServeMux) {
	for _, pattern := range web.Patterns() {
		root.Handle("GET "+pattern, web.Handler())
	}
	root.Handle("GET /assets/", web.Assets())
}

// orPage shows the page to a browser whose address matches nothing. A program, which
// does not accept HTML, gets the answer of the calls.
func orPage(calls http.Handler) http.Handler {
	missing := web.Missing()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
			missing.ServeHTTP(w, r)
			return
		}
		calls.ServeHTTP(w, r)
	})
}
