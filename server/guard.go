package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/server/streams"
)

// oldCookie carried the token in earlier releases. Cookies are sent to every port of
// a host, so another server on this machine could read it.
const oldCookie = "stet"

// contentPolicy allows the page to load only its own files, and forbids framing it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// guard checks hosts, origins and tokens.
type guard struct {
	verify func(token string) (access.Principal, error)
	sign   func(token string, message []byte) (access.Principal, []byte, error) // nil without subscriptions
	open   bool                                                                 // no token is required
	hosts  func() []string
	cross  *http.CrossOriginProtection
}

func newGuard(hosts func() []string, verify func(string) (access.Principal, error)) *guard {
	return &guard{verify: verify, open: verify == nil, hosts: hosts, cross: http.NewCrossOriginProtection()}
}

// owner is the principal of a server with one token.
var owner = access.Principal{Token: "owner", Scope: access.Admin}

// only returns a function that accepts one token, or nil for the empty one. It
// compares hashes, so that timing reveals nothing about the token.
func only(token string) func(string) (access.Principal, error) {
	if token == "" {
		return nil
	}
	want := sha256.Sum256([]byte(token))
	return func(token string) (access.Principal, error) {
		got := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return access.Principal{}, access.ErrDenied
		}
		return owner, nil
	}
}

// protect refuses unknown hosts and cross-site requests of browsers, and sets the
// security headers of a page.
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
		if _, err := r.Cookie(oldCookie); err == nil {
			http.SetCookie(w, &http.Cookie{Name: oldCookie, Path: "/", MaxAge: -1, HttpOnly: true})
		}
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		checked.ServeHTTP(w, r)
	})
}

func isLoopback(name string) bool { return name == "localhost" || name == "127.0.0.1" || name == "::1" }

// hostName is a Host header without the port.
func hostName(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return strings.ToLower(strings.Trim(name, "[]"))
}

func (g *guard) knows(host string) bool {
	name := hostName(host)
	if isLoopback(name) {
		return true
	}
	_, parent, _ := strings.Cut(name, ".")
	hosts := g.hosts()
	return slices.Contains(hosts, host) || slices.Contains(hosts, name) || parent != "" && slices.Contains(hosts, "*."+parent)
}

// who returns the principal of a request. The token is in a header that only programs
// and our own page can set. It is never in the address, which ends up in histories
// and logs, nor in a cookie, which browsers send to other servers of this host.
func (g *guard) who(r *http.Request) (access.Principal, error) {
	if g.open {
		return owner, nil
	}
	token := bearer(r)
	if token == "" {
		return access.Principal{}, access.ErrDenied
	}
	if claim, ok := streams.ClaimOf(r); ok && g.sign != nil {
		return g.claimant(claim)
	}
	return g.verify(token)
}

// claimant returns the principal of a worker that answers for a wake: it acts for the
// token that its claim was made for, and may do nothing but answer.
func (g *guard) claimant(c streams.Claim) (access.Principal, error) {
	who, code, err := g.sign(c.Owner, c.Message)
	if err != nil {
		return access.Principal{}, err
	}
	if !hmac.Equal(code, c.Code) {
		return access.Principal{}, access.ErrDenied
	}
	return who, nil
}

// signs returns a function that signs for the owner of the only token.
func signs(token string) func(string, []byte) (access.Principal, []byte, error) {
	secret := sha256.Sum256([]byte(token))
	return func(id string, message []byte) (access.Principal, []byte, error) {
		if id != owner.Token {
			return access.Principal{}, nil, access.ErrDenied
		}
		return owner, access.Code(string(secret[:]), message), nil
	}
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
