package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/osfile"
)

// Dir is a bucket in a directory, for stores without another one. It is safe for
// concurrent use, even by several processes.
type Dir struct{ path string }

var _ blob.Objects = (*Dir)(nil)

// NewDir returns the bucket in a directory, which is created with the first object.
func NewDir(path string) *Dir { return &Dir{path: path} }

// temporary is the prefix of incomplete files. No key has a segment that begins with
// a dot.
const temporary = ".tmp-"

// file returns the path of an object.
func (d *Dir) file(ctx context.Context, key string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	for _, segment := range strings.Split(key, "/") {
		if segment == "" || strings.HasPrefix(segment, ".") || strings.IndexFunc(segment, foreign) >= 0 {
			return "", fmt.Errorf("%w: key %q of an object", blob.ErrInvalidID, key)
		}
	}
	return filepath.Join(d.path, filepath.FromSlash(key)), nil
}

func foreign(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c))
}

// PutObject implements blob.Objects: the file is synced and renamed, then its
// directory is synced.
func (d *Dir) PutObject(ctx context.Context, key string, r io.Reader, size int64) error {
	path, err := d.file(ctx, key)
	if err != nil {
		return fmt.Errorf("put object: %w", err)
	}
	if err := d.makeDirs(filepath.Dir(path)); err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	err = fill(ctx, f, r, size)
	if err = errors.Join(err, f.Close()); err == nil {
		err = osfile.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("put object %s: %w", key, errors.Join(err, removeFile(f.Name())))
	}
	if err := osfile.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	return nil
}

// fill writes exactly size bytes and syncs them.
func fill(ctx context.Context, f *os.File, r io.Reader, size int64) error {
	n, err := io.Copy(f, io.LimitReader(r, size+1))
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("%w: source has %d bytes or more, want %d", blob.ErrMismatch, n, size)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.Sync()
}

// makeDirs makes a directory with those above it, so that they survive a crash.
func (d *Dir) makeDirs(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return osfile.SyncDir(filepath.Dir(path))
}

// OpenObject implements blob.Objects.
func (d *Dir) OpenObject(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	path, err := d.file(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open object: %w", err)
	}
	f, err := osfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open object %s: %w", key, blob.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open object %s: %w", key, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open object %s: %w", key, errors.Join(err, f.Close()))
	}
	if length < 0 {
		length = max(0, info.Size()-offset)
	}
	if offset < 0 || offset > info.Size() || length > info.Size()-offset {
		err := fmt.Errorf("%w: range of %d bytes at %d is outside of %d bytes", blob.ErrCorrupt, length, offset, info.Size())
		return nil, fmt.Errorf("open object %s: %w", key, errors.Join(err, f.Close()))
	}
	return &part{io.NewSectionReader(f, offset, length), f}, nil
}

// part is a part of a file.
type part struct {
	io.Reader
	file *os.File
}

func (p *part) Close() error { return p.file.Close() }

// RemoveObjects implements blob.Objects.
func (d *Dir) RemoveObjects(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		path, err := d.file(ctx, key)
		if err == nil {
			err = removeFile(path)
		}
		if err != nil {
			return fmt.Errorf("remove object %s: %w", key, err)
		}
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ListObjects implements blob.Objects. It holds the names of one directory at a
// time.
func (d *Dir) ListObjects(ctx context.Context, prefix, after string, fn func(blob.ObjectInfo) error) error {
	return d.list(ctx, "", prefix, after, fn)
}

func (d *Dir) list(ctx context.Context, dir, prefix, after string, fn func(blob.ObjectInfo) error) error {
	entries, err := os.ReadDir(filepath.Join(d.path, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	sortAsKeys(entries)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		key := dir + e.Name()
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			key += "/"
			if strings.HasPrefix(key, prefix) || strings.HasPrefix(prefix, key) {
				err = d.list(ctx, key, prefix, after, fn)
			}
		case strings.HasPrefix(key, prefix) && key > after:
			err = give(e, key, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveUnfinished removes files under a prefix that were begun before the given time and
// never got their final name because their writer was killed. It serves as the Unfinished
// of a Driver.
func (d *Dir) RemoveUnfinished(ctx context.Context, prefix string, before time.Time) (result SweepResult, err error) {
	top := filepath.Join(d.path, filepath.FromSlash(prefix[:strings.LastIndexByte(prefix, '/')+1]))
	err = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no object was ever archived, or it was removed meanwhile
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), temporary) {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // complete since the directory was read
		}
		if err != nil || !info.ModTime().Before(before) {
			return err
		}
		result.Removed++
		result.RemovedBytes += info.Size()
		return removeFile(path)
	})
	return result, err
}

func give(e fs.DirEntry, key string, fn func(blob.ObjectInfo) error) error {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since the directory was read
	}
	if err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	return fn(blob.ObjectInfo{Key: key, Size: info.Size(), Time: info.ModTime()})
}

// sortAsKeys sorts entries in the order of keys: a directory sorts with a slash after
// its name, which differs from the order of plain names.
func sortAsKeys(entries []fs.DirEntry) {
	name := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(name(a), name(b)) })
}
