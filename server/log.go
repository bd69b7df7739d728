package server

import (
	"log/slog"
	"net/http"
	"time"
)

// requestHeader carries the id of a request to the caller.
const requestHeader = "X-Request-Id"

// logged assigns an id to each request, and writes one line when it has ended: no
// headers, no query, no body, and only the pattern of the address.
func (o *Options) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{request: newRequestID()}
		w.Header().Set(requestHeader, c.request)
		r = r.WithContext(withCall(r.Context(), c))
		if o.Logger == nil || !o.Logger.Enabled(r.Context(), slog.LevelInfo) {
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		rec := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		o.Logger.LogAttrs(r.Context(), slog.LevelInfo, "request", c.attrs(r, rec.status, time.Since(start))...)
	})
}

func (c *call) attrs(r *http.Request, status int, took time.Duration) []slog.Attr {
	path := c.procedure
	if path == "" {
		path = r.Pattern // a typed path may hold anything, even a token
	}
	if path == "" {
		path = "other"
	}
	attrs := []slog.Attr{
		slog.String("request", c.request), slog.String("method", knownMethod(r.Method)), slog.String("path", path),
		slog.Int("status", status), slog.Duration("took", took),
	}
	if c.Token != "" {
		attrs = append(attrs, slog.String("token", c.Token))
	}
	if c.Tenant != "" {
		attrs = append(attrs, slog.String("tenant", c.Tenant))
	}
	if c.code != "" {
		attrs = append(attrs, slog.String("code", c.code))
	}
	return attrs
}

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return method
	}
	return "other"
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

// Flush implements http.Flusher, which some handlers use directly.
func (w *statusWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
