package s3blob

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/stet-dev/stet/fault"
)

// errAddress means that an address of a bucket is invalid.
var errAddress = fault.New(fault.Invalid, "invalid address of a bucket, want s3://bucket/prefix?region=…&endpoint=…&path-style=true")

// address locates a bucket.
type address struct {
	bucket string
	// prefix is empty or ends in a slash.
	prefix    string
	region    string
	endpoint  string
	pathStyle bool
}

var bucketName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`) })

// parseAddress parses s3://bucket/prefix?region=…&endpoint=…&path-style=…. Its errors
// do not quote the address, which may contain a secret.
func parseAddress(raw string) (address, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return address{}, errAddress
	}
	if u.Scheme != "s3" {
		return address{}, fmt.Errorf("%w: it does not begin with s3://", errAddress)
	}
	if u.User != nil || u.Fragment != "" {
		return address{}, fmt.Errorf("%w: put credentials in the environment or the shared files", errAddress)
	}
	a := address{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if !bucketName().MatchString(a.bucket) {
		return address{}, fmt.Errorf("%w: invalid bucket name %q", errAddress, a.bucket)
	}
	if a.prefix != "" {
		if err := checkKey(a.prefix); err != nil {
			return address{}, fmt.Errorf("%w: prefix: %w", errAddress, err)
		}
		a.prefix += "/"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return address{}, fmt.Errorf("%w: cannot parse its parameters", errAddress)
	}
	return a, a.setParameters(query)
}

func (a *address) setParameters(query url.Values) error {
	styled := false
	for name, values := range query {
		if len(values) != 1 {
			return fmt.Errorf("%w: %s is given %d times", errAddress, name, len(values))
		}
		switch value := values[0]; name {
		case "region":
			a.region = value
		case "endpoint":
			if err := checkEndpoint(value); err != nil {
				return err
			}
			a.endpoint = value
		case "path-style":
			var err error
			if a.pathStyle, err = strconv.ParseBool(value); err != nil {
				return fmt.Errorf("%w: path-style must be true or false", errAddress)
			}
			styled = true
		default:
			return fmt.Errorf("%w: unknown parameter %q", errAddress, name)
		}
	}
	if !styled {
		// Bucket names rarely resolve as host names on self-hosted servers.
		a.pathStyle = a.endpoint != ""
	}
	return nil
}

func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%w: the endpoint must be an http:// or https:// address", errAddress)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%w: the endpoint must have only scheme, host and path", errAddress)
	}
	return nil
}
