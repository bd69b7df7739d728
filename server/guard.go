package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/web"
)

// cookieName carries the token of a browser that has logged in.
const cookieName = "stet"

// contentPolicy lets the page load its own files and nothing else, and lets
// nobody frame it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// guard keeps others out.
type guard struct {
	token [sha256.Size]byte // hashed, so that comparing tells nothing of it
	open  bool              // no token is wanted
	hosts []string
	cross *http.CrossOriginProtection
}

func newGuard(opts *Options) *guard {
	return &guard{
		token: sha256.Sum256([]byte(opts.Token)),
		open:  opts.Token == "",
		hosts: opts.Hosts,
		cross: http.NewCrossOriginProtection(),
	}
}

// protect refuses unknown hosts and requests that a browser sends on behalf of
// another site, and sets the headers that keep a page from being misused.
func (g *guard) protect(next http.Handler) http.Handler {
	checked := g.cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.knows(r.Host) {
			http.Error(w, "unknown host", http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		checked.ServeHTTP(w, r)
	})
}

func (g *guard) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	return name == "localhost" || name == "127.0.0.1" || name == "::1" ||
		slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name)
}

// authorize wants the token. It is never taken from the address, which ends up
// in histories and logs.
func (g *guard) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.open || g.fits(bearer(r)) || g.fits(cookie(r)) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="stet"`)
		http.Error(w, "a token is needed", http.StatusUnauthorized)
	})
}

// orLogin shows a page to those with the token, and to others how to show it.
func (g *guard) orLogin(page http.Handler) http.Handler {
	login := web.Login()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.open || g.fits(bearer(r)) || g.fits(cookie(r)) {
			page.ServeHTTP(w, r)
			return
		}
		login.ServeHTTP(w, r)
	})
}

func (g *guard) fits(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return token != "" && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func cookie(r *http.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return c.Value
}

// login turns a token in the body into a cookie that scripts cannot read and
// other sites cannot send.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	token := r.PostFormValue("token")
	if !g.open && !g.fits(token) {
		http.Error(w, "that is not the token", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
		MaxAge: int((30 * 24 * time.Hour).Seconds()),
	})
	w.WriteHeader(http.StatusNoContent)
}

// TokenName is the usual name of the token file, in the directory of the store.
const TokenName = "token"

// TokenFile returns the token in a file, making both where there is none. Only
// the owner may read it.
func TokenFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(data))) >= 32 {
		return strings.TrimSpace(string(data)), nil
	}
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	var random [32]byte
	rand.Read(random[:])
	token := hex.EncodeToString(random[:])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(token + "\n"); err != nil {
		f.Close()
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return token, os.Rename(f.Name(), path)
}

// logged writes one line for each request: no headers, no query, no body.
func (o *Options) logged(next http.Handler) http.Handler {
	if o.Logger == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		o.Logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", rec.status),
			slog.Duration("took", time.Since(start)))
	})
}

// statusWriter remembers the status and lets streams flush through it.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController, and so streams, reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher, which some handlers ask for directly.
func (w *statusWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
