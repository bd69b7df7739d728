package s3api

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/stet-dev/stet/fault"
)

// errBucket means that a bucket cannot be addressed.
var errBucket = fault.New(fault.Invalid, "cannot address the bucket")

// domains are those of the parts of AWS that are not under amazonaws.com, by how the
// names of their regions begin.
var domains = []struct{ prefix, domain string }{
	{"cn-", "amazonaws.com.cn"},
	{"eusc-", "amazonaws.eu"},
	{"us-iso-", "c2s.ic.gov"},
	{"us-isob-", "sc2s.sgov.gov"},
	{"eu-isoe-", "cloud.adc-e.uk"},
	{"us-isof-", "csp.hci.ic.gov"},
}

// globalRegion is the name of AWS's endpoints that belong to no region.
const globalRegion = "aws-global"

// Endpoint returns the address of a service of AWS in a region.
func Endpoint(service, region string) (string, error) {
	if region == globalRegion {
		return "https://" + service + ".amazonaws.com", nil
	}
	if !label(strings.ToLower(region)) {
		return "", fmt.Errorf("%w: invalid region %q", errBucket, region)
	}
	domain := "amazonaws.com"
	for _, d := range domains {
		if strings.HasPrefix(region, d.prefix) {
			domain = d.domain
		}
	}
	return "https://" + service + "." + region + "." + domain, nil
}

// SigningRegion returns the region that signatures name.
func SigningRegion(region string) string {
	if region == globalRegion {
		return "us-east-1"
	}
	return region
}

// place is where a bucket is.
type place struct {
	scheme, host string
	path         string // of the bucket, escaped, without a slash at its end
}

// locate returns where a bucket is. Its name is part of the host where that can be, and
// else of the path.
func locate(endpoint, bucket string, pathStyle bool) (place, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return place{}, fmt.Errorf("%w: the endpoint must be an http:// or https:// address", errBucket)
	}
	if strings.HasSuffix(bucket, "--x-s3") {
		return place{}, fmt.Errorf("%w: %q is a directory bucket, which stet does not support: use a general purpose bucket", errBucket, bucket)
	}
	p := place{scheme: u.Scheme, host: u.Host, path: strings.TrimRight(u.EscapedPath(), "/")}
	if pathStyle || net.ParseIP(u.Hostname()) != nil || !inHost(bucket, u.Scheme == "https") {
		p.path += "/" + escapePath(bucket)
	} else {
		p.host = bucket + "." + u.Host
	}
	return p, nil
}

// inHost reports whether the name of a bucket can be part of a host's name. A certificate
// is for one level of names, so that one with dots cannot be with TLS.
func inHost(bucket string, tls bool) bool {
	labels := strings.Split(bucket, ".")
	if tls && len(labels) > 1 || net.ParseIP(bucket) != nil || len(bucket) < 3 || len(bucket) > 63 {
		return false
	}
	for _, l := range labels {
		if !label(l) {
			return false
		}
	}
	return true
}

// label reports whether a text can be a part of a host's name.
func label(text string) bool {
	for i := range len(text) {
		c := text[i]
		edge := i == 0 || i == len(text)-1
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' && !edge) {
			return false
		}
	}
	return text != ""
}

// object returns the address of an object, or of the bucket if the key is empty.
func (p place) object(key string, query url.Values) *url.URL {
	escaped := p.path
	if key != "" {
		escaped += "/" + escapePath(key)
	} else if escaped == "" {
		escaped = "/"
	}
	plain, _ := url.PathUnescape(escaped) // what was escaped can be unescaped
	return &url.URL{Scheme: p.scheme, Host: p.host, Path: plain, RawPath: escaped, RawQuery: canonicalQuery(query)}
}

// escapePath escapes all bytes but those that signatures leave, and slashes.
func escapePath(text string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			out.WriteByte(c)
		} else {
			out.WriteString(string([]byte{'%', digits[c>>4], digits[c&15]}))
		}
	}
	return out.String()
}
