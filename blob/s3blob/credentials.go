package s3blob

import (
	"context"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// Keys sign requests.
type Keys struct {
	Access, Secret string
	// Session belongs to keys that are valid for a while.
	Session string
	// Expires is zero for keys that stay valid.
	Expires time.Time
}

// String hides what is secret, so that no message shows it.
func (k Keys) String() string { return s3api.Keys(k).String() }

// GoString is String, for %#v.
func (k Keys) GoString() string { return k.String() }

// Credentials return keys. They are called for the first ones, and again shortly before these
// expire, by one goroutine at a time.
type Credentials func(ctx context.Context) (Keys, error)

// StaticKeys returns credentials that are always the same keys.
func StaticKeys(access, secret string) Credentials {
	return func(context.Context) (Keys, error) { return Keys{Access: access, Secret: secret}, nil }
}

func (c Credentials) source(ctx context.Context) (s3api.Keys, error) {
	keys, err := c(ctx)
	return s3api.Keys(keys), err
}
