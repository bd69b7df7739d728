package awsconfig

import (
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// SetTaskHost sets where a container finds its keys, and returns what undoes that.
func SetTaskHost(address string) func() {
	old := taskHost
	taskHost = address
	return func() { taskHost = old }
}

// CachedAt is Cached with another clock.
func CachedAt(source s3api.Credentials, now func() time.Time) s3api.Credentials {
	c := &cache{source: source, now: now}
	return c.get
}
