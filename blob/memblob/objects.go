package memblob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
)

// Objects is an in-memory blob.Objects: the bucket that tests use and that real
// buckets are compared with.
type Objects struct {
	mu      sync.RWMutex // guards objects
	objects map[string]object
}

// object is one object. Its data never changes once stored, so readers need no lock
// and can go on after the object is removed or replaced.
type object struct {
	data []byte
	time time.Time
}

var _ blob.Objects = (*Objects)(nil)

// NewObjects returns an empty bucket.
func NewObjects() *Objects {
	return &Objects{objects: make(map[string]object)}
}

// PutObject implements blob.Objects.
func (o *Objects) PutObject(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := errors.Join(ctx.Err(), checkKey(key)); err != nil {
		return fmt.Errorf("put object %q: %w", key, err)
	}
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("read content of object %q: %w", key, err)
	}
	// The source may have taken long: store nothing if the caller has given up.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put object %q: %w", key, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[key] = object{data: slices.Clip(data), time: time.Now()}
	return nil
}

// checkKey rejects keys that some buckets cannot hold.
func checkKey(key string) error {
	for _, segment := range strings.Split(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("%w: key of an object has the segment %q", blob.ErrInvalidID, segment)
		}
	}
	if i := strings.IndexFunc(key, func(c rune) bool { return !keyRune(c) }); i >= 0 {
		return fmt.Errorf("%w: key of an object has a %q", blob.ErrInvalidID, []rune(key[i:])[0])
	}
	return nil
}

func keyRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._/-", c)
}

// OpenObject implements blob.Objects.
func (o *Objects) OpenObject(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := errors.Join(ctx.Err(), checkKey(key)); err != nil {
		return nil, fmt.Errorf("open object %q: %w", key, err)
	}
	o.mu.RLock()
	object, ok := o.objects[key]
	o.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("open object %q: %w", key, blob.ErrNotFound)
	}
	size := int64(len(object.data))
	if length < 0 {
		length = max(0, size-offset)
	}
	if offset < 0 || offset > size || length > size-offset {
		return nil, fmt.Errorf("open object %q: %w: range of %d bytes at %d is outside of %d bytes", key, blob.ErrCorrupt, length, offset, size)
	}
	// Not a bytes.Reader: its WriteTo would pass our own slice to the caller's
	// writer.
	return io.NopCloser(struct{ io.Reader }{bytes.NewReader(object.data[offset : offset+length])}), nil
}

// RemoveObjects implements blob.Objects.
func (o *Objects) RemoveObjects(ctx context.Context, keys ...string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove objects: %w", err)
	}
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return fmt.Errorf("remove object %q: %w", key, err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		delete(o.objects, key)
	}
	return nil
}

// ListObjects implements blob.Objects. It lists a snapshot and holds no lock while fn
// runs.
func (o *Objects) ListObjects(ctx context.Context, prefix, after string, fn func(blob.ObjectInfo) error) error {
	for _, info := range o.snapshot(prefix, after) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
		if err := fn(info); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	return nil
}

func (o *Objects) snapshot(prefix, after string) []blob.ObjectInfo {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var infos []blob.ObjectInfo
	for _, key := range slices.Sorted(maps.Keys(o.objects)) {
		if strings.HasPrefix(key, prefix) && key > after {
			object := o.objects[key]
			infos = append(infos, blob.ObjectInfo{Key: key, Size: int64(len(object.data)), Time: object.time})
		}
	}
	return infos
}
