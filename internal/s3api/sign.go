package s3api

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	// unsigned stands for the hash of a body that the signature leaves out.
	unsigned = "UNSIGNED-PAYLOAD"
	// amzTime is how signatures write a time.
	amzTime = "20060102T150405Z"
)

// Scope is what a signature is valid for.
type Scope struct{ Region, Service string }

// unsignedHeaders are those that proxies may change, or that the transport adds.
var unsignedHeaders = []string{"Authorization", "User-Agent", "Expect", "Accept-Encoding", "Transfer-Encoding", "X-Amzn-Trace-Id"}

// Sign adds the headers that show who sends a request. The hash is that of its body.
func Sign(req *http.Request, keys Keys, scope Scope, hash string, when time.Time) {
	when = when.UTC()
	req.Header.Set("X-Amz-Date", when.Format(amzTime))
	if keys.Session != "" {
		req.Header.Set("X-Amz-Security-Token", keys.Session)
	}
	req.Host = signedHost(req)
	names, lines := canonicalHeaders(req)
	req.URL.RawQuery = canonicalQuery(req.URL.Query())
	signature := scope.sign(keys.Secret, when, canonicalRequest(req, names, lines, hash))
	req.Header.Set("Authorization", algorithm+" Credential="+keys.Access+"/"+scope.of(when)+", SignedHeaders="+names+", Signature="+signature)
}

// Presign returns the address of a request that needs no other credentials for a while.
// It is a secret.
func Presign(req *http.Request, keys Keys, scope Scope, ttl time.Duration, when time.Time) string {
	when = when.UTC()
	req.Host = signedHost(req)
	query := req.URL.Query()
	query.Set("X-Amz-Algorithm", algorithm)
	query.Set("X-Amz-Credential", keys.Access+"/"+scope.of(when))
	query.Set("X-Amz-Date", when.Format(amzTime))
	query.Set("X-Amz-Expires", strconv.FormatInt(int64(ttl/time.Second), 10))
	query.Set("X-Amz-SignedHeaders", "host")
	if keys.Session != "" {
		query.Set("X-Amz-Security-Token", keys.Session)
	}
	req.URL.RawQuery = canonicalQuery(query)
	signature := scope.sign(keys.Secret, when, canonicalRequest(req, "host", "host:"+req.Host+"\n", unsigned))
	req.URL.RawQuery += "&X-Amz-Signature=" + signature
	return req.URL.String()
}

func canonicalRequest(req *http.Request, names, lines, hash string) string {
	path := req.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	return strings.Join([]string{req.Method, path, req.URL.RawQuery, lines, names, hash}, "\n")
}

// canonicalHeaders returns the names of the signed headers and, in the same order, a
// line for each.
func canonicalHeaders(req *http.Request) (names, lines string) {
	type header struct{ name, value string }
	headers := []header{{"host", req.Host}}
	if req.ContentLength > 0 {
		headers = append(headers, header{"content-length", strconv.FormatInt(req.ContentLength, 10)})
	}
	for name, values := range req.Header {
		if !slices.Contains(unsignedHeaders, name) {
			value := strings.Join(strings.Fields(strings.Join(values, ",")), " ")
			headers = append(headers, header{strings.ToLower(name), value})
		}
	}
	slices.SortFunc(headers, func(a, b header) int { return cmp.Compare(a.name, b.name) })
	var all []string
	var text strings.Builder
	for _, h := range headers {
		all = append(all, h.name)
		text.WriteString(h.name + ":" + h.value + "\n")
	}
	return strings.Join(all, ";"), text.String()
}

// canonicalQuery writes parameters in the order and with the escapes that are signed.
func canonicalQuery(query url.Values) string {
	for _, values := range query {
		slices.Sort(values)
	}
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// signedHost returns the host without the port that its scheme has anyway: services
// compare it so.
func signedHost(req *http.Request) string {
	port := ":80"
	if req.URL.Scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(cmp.Or(req.Host, req.URL.Host), port)
}

func (s Scope) of(when time.Time) string {
	return when.Format("20060102") + "/" + s.Region + "/" + s.Service + "/aws4_request"
}

func (s Scope) sign(secret string, when time.Time, request string) string {
	key := []byte("AWS4" + secret)
	for _, part := range strings.Split(s.of(when), "/") {
		key = mac(key, part)
	}
	text := algorithm + "\n" + when.Format(amzTime) + "\n" + s.of(when) + "\n" + Hash([]byte(request))
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Hash returns the hash of a body as signatures write it.
func Hash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
