package blob

import (
	"context"
	"io"
	"time"
)

// Objects is a bucket of large objects under keys. Drivers keep in it what is too
// large for a database and record its keys in rows: they write the object first and
// its row second, so a crash may leave an object without a row, but never a row
// without its object.
//
// The caller chooses the keys, which consist of [A-Za-z0-9._/-] and are used once. So
// nothing depends on the order of two writes to one key, nor on conditional writes,
// which not every bucket has. It is safe for concurrent use.
type Objects interface {
	// PutObject stores size bytes of r under a key. It returns nil only after the
	// bucket has confirmed them, whole and unchanged. If r ends early or has more
	// than size bytes, it fails and stores nothing under the key.
	PutObject(ctx context.Context, key string, r io.Reader, size int64) error
	// OpenObject reads length bytes from offset, or everything from there if length
	// is negative. The error wraps ErrNotFound if there is no object, and ErrCorrupt
	// if the range is outside of it. A connection that breaks midway is an error of
	// Read, never an early end.
	OpenObject(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// RemoveObjects removes objects. A missing one is not an error.
	RemoveObjects(ctx context.Context, keys ...string) error
	// ListObjects calls fn for every object whose key begins with prefix and is
	// greater than after, in byte order, until fn returns an error, which
	// ListObjects returns.
	ListObjects(ctx context.Context, prefix, after string, fn func(ObjectInfo) error) error
}

// ObjectInfo describes an object of a bucket.
type ObjectInfo struct {
	Key  string
	Size int64
	// Time is when the object was stored, by the bucket's clock.
	Time time.Time
}
