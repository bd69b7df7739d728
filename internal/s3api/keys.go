package s3api

import (
	"context"
	"time"
)

// Keys sign requests.
type Keys struct {
	Access, Secret string
	// Session belongs to keys that are valid for a while.
	Session string
	// Expires is zero for keys that stay valid.
	Expires time.Time
}

// Credentials returns the keys for a request. It is called for each request and by
// several goroutines.
type Credentials func(ctx context.Context) (Keys, error)

// Static returns credentials that are always the same keys.
func Static(k Keys) Credentials {
	return func(context.Context) (Keys, error) { return k, nil }
}

// Complete reports whether there is an access key and a secret key.
func (k Keys) Complete() bool { return k.Access != "" && k.Secret != "" }

// String hides what is secret, so that no message shows it.
func (k Keys) String() string { return "keys of " + k.Access }

// GoString is String, for %#v.
func (k Keys) GoString() string { return k.String() }
