package server

import (
	"net/http"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/web"
)

// page returns the pages of a store.
func page(db *stet.DB) http.Handler { return web.Handler(db) }

// mountPage adds the addresses of the page. Files that hold nothing of anybody's
// are given to everybody; the rest is for those with a token.
func mountPage(root *http.ServeMux, g *gate) {
	pages := g.pages(web.Login())
	root.Handle("GET /{$}", pages)
	root.Handle("GET /c/{id}", pages)
	root.Handle("GET /assets/", web.Assets())
}
