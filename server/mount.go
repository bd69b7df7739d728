package server

import (
	"net/http"

	"github.com/stet-dev/stet/web"
)

// mountPage adds the addresses of the page. Files that hold nothing of anybody's
// are given to everybody; the rest is for those with a token.
func mountPage(root *http.ServeMux, g *gate) {
	page := g.pages(web.Login(), web.Handler())
	for _, pattern := range web.Patterns() {
		root.Handle("GET "+pattern, page)
	}
	root.Handle("GET /assets/", web.Assets())
}
