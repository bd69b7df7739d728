package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// asset is a file of the page, plain and compressed.
type asset struct {
	kind   string // content type
	tag    string // changes with the content
	body   []byte
	packed []byte // nil if it is not smaller
}

// assets holds the files of the page by name. They are compressed at the first use,
// which takes a few milliseconds.
var assets = sync.OnceValue(func() map[string]*asset {
	all := make(map[string]*asset)
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		panic(err) // the directory is embedded
	}
	for _, e := range entries {
		body, err := fs.ReadFile(dist, "dist/"+e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		all[e.Name()] = &asset{kind: kindOf(e.Name()), tag: `"` + hex.EncodeToString(sum[:16]) + `"`, body: body, packed: pack(body)}
	}
	return all
})

// kindOf does not use the system's table, which may be wrong.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".html":
		return "text/html; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func pack(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is known
	}
	w.Write(body) // into memory: it cannot fail
	w.Close()
	if b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}

// Assets serves the styles and scripts of the page below /assets/. They hold no user
// data. Browsers revalidate them, because their names do not change.
func Assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := assets()[strings.TrimPrefix(r.URL.Path, "/assets/")]
		if a == nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", a.tag)
		h.Add("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Type", a.kind)
		body := a.body
		if a.packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			body = a.packed
		}
		w.Write(body)
	})
}
