// Package web is the page of a stet server. It shows what agents said and did, and
// can undo it.
//
// The page is one program for the browser, built from app and embedded from dist, so
// a stet binary needs no other files and the page nothing else from the network. It
// gets everything through the services of the server. Transcripts are hostile input:
// the server sanitizes what reaches the page as HTML, everything else is shown as
// text, and the content security policy allows only these files to run. The page
// keeps the token of its user in the session storage of the tab, which no other
// server can read, and sends it with every call.
//
//	mux.Handle("GET /assets/", web.Assets())
//	for _, pattern := range web.Patterns() {
//		mux.Handle("GET "+pattern, web.Handler())
//	}
//
// After a change in app, run go generate here; the built files are committed.
package web

//go:generate ../internal/tools/npm.sh app
//go:generate npm --prefix app run build

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed dist
var dist embed.FS

// Patterns lists the addresses of views, as patterns of http.ServeMux. Handler serves
// all of them.
func Patterns() []string {
	return []string{
		"/{$}", "/c/{id}", "/c/{id}/{tab}", "/live/{id}", "/inspect/{id}", "/try/{id}",
		"/compare", "/search", "/storage", "/operations",
	}
}

// Handler serves the page for every address; the page decides what to show. It holds
// no data; it asks for the token and fetches everything with it. Browsers do not
// store it, so a new release is visible at once.
func Handler() http.Handler { return serve(http.StatusOK) }

// Missing serves the page for addresses that lead nowhere: it says so to a person.
func Missing() http.Handler { return serve(http.StatusNotFound) }

func serve(status int) http.Handler {
	body, err := fs.ReadFile(dist, "dist/index.html")
	if err != nil {
		panic(err) // the file is embedded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		w.Write(body)
	})
}
