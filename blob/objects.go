package blob

import (
	"context"
	"io"
	"time"
)

// Objects is a bucket: large bytes under keys, somewhere else. Drivers keep in it
// what would burden a database, and a row of theirs says what the bucket holds:
// the object is written first and its row second, so that a crash leaves an
// object that nothing names and never a name without its object.
//
// Keys are chosen by the caller, consist of [A-Za-z0-9._/-], and are used once:
// nothing here depends on the order of two writes of one key, nor on conditional
// writes, which not every bucket has. It is safe for concurrent use.
type Objects interface {
	// PutObject stores size bytes of r under a key. It returns nil only when the
	// bucket has confirmed them, whole and unchanged. A reader that ends early, or
	// goes on after size bytes, is an error and stores nothing under the key.
	PutObject(ctx context.Context, key string, r io.Reader, size int64) error
	// OpenObject reads length bytes from offset on, or with a negative length all
	// the rest. Where there is no object the error wraps ErrNotFound, where the
	// range does not lie inside it ErrCorrupt. A connection that breaks midway is an
	// error of Read, never an early end.
	OpenObject(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// RemoveObjects removes objects. One that is not there is no error.
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
	// Time is when the bucket says that it was stored.
	Time time.Time
}
