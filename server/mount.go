package server

import (
	"net/http"

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
