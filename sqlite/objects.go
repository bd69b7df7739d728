package sqlite

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/osfile"
)

const (
	storeFileName = "store" // in the objects directory: the id of its store
	tempDirName   = "tmp"
)

// files are the mutating calls on object files; tests count them and make them fail.
type files interface {
	MkdirAll(dir string) error
	Create(path string) (objectFile, error)
	Rename(from, to string) error
	Link(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
}

type objectFile interface {
	io.Writer
	Sync() error
	Close() error
}

type osFiles struct{}

func (osFiles) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

func (osFiles) Create(path string) (objectFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (osFiles) Rename(from, to string) error { return osfile.Rename(from, to) }

func (osFiles) Link(from, to string) error { return os.Link(from, to) }

func (osFiles) Remove(path string) error { return osfile.Remove(path) }

func (osFiles) SyncDir(dir string) error { return osfile.SyncDir(dir) }

// objects keeps large contents as files: objects/ab/cdef….suffix. The suffix is random
// and part of the blob's row, so a new row never names a file that a collector is about
// to remove.
//
// While a file has no row, objects/tmp holds a second link to it, named id.suffix.
// After a crash these links name everything that may need cleaning up, so there is no
// need to scan all objects.
type objects struct {
	dir   string
	files files

	mu    sync.Mutex // guards ready
	ready bool       // the shard directories are durable
}

func newObjects(dir string, f files) *objects { return &objects{dir: dir, files: f} }

func (o *objects) path(id blob.ID, suffix string) string {
	name := id.String()
	return filepath.Join(o.dir, name[:2], name[2:]+"."+suffix)
}

func (o *objects) tempPath(id blob.ID, suffix string) string {
	return filepath.Join(o.dir, tempDirName, id.String()+"."+suffix)
}

// write stores size bytes of r durably and returns the suffix for the row. Once
// the row is durable, unlinkTemp removes the second link.
func (o *objects) write(id blob.ID, r io.Reader, size int64) (string, error) {
	var random [8]byte
	rand.Read(random[:])
	suffix := hex.EncodeToString(random[:])
	if err := o.writeFile(o.tempPath(id, suffix), o.path(id, suffix), r, size); err != nil {
		return "", errors.Join(err, o.discard(id, suffix))
	}
	return suffix, nil
}

// unlinkTemp removes the second link once the row of an object is durable.
func (o *objects) unlinkTemp(id blob.ID, suffix string) error {
	return ignoreMissing(o.files.Remove(o.tempPath(id, suffix)))
}

// condemn adds the second link before the row of an object is removed, so that a crash
// afterwards does not leave the file behind.
func (o *objects) condemn(id blob.ID, suffix string) error {
	if err := o.files.MkdirAll(filepath.Join(o.dir, tempDirName)); err != nil {
		return err
	}
	err := o.files.Link(o.path(id, suffix), o.tempPath(id, suffix))
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// discard removes an object that has no row.
func (o *objects) discard(id blob.ID, suffix string) error {
	return errors.Join(
		ignoreMissing(o.files.Remove(o.path(id, suffix))),
		ignoreMissing(o.files.Remove(o.tempPath(id, suffix))))
}

// writeFile gives the file its second name before it syncs: one commit of the file
// system's journal then carries both. Nothing reads the name before there is a row.
func (o *objects) writeFile(temp, final string, r io.Reader, size int64) error {
	f, err := o.createTemp(temp)
	if err != nil {
		return err
	}
	err = copyExactly(f, r, size)
	if err == nil {
		err = o.makeShards()
	}
	if err == nil {
		err = fileError("name", o.files.Link(temp, final))
	}
	if err == nil {
		err = syncError("sync", f.Sync())
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fileError("write object file", err)
	}
	return syncError("sync directory", o.files.SyncDir(filepath.Dir(final)))
}

// copyExactly copies size bytes, which must be all of r. A source with WriteTo, as in
// memory, needs one call.
func copyExactly(f io.Writer, r io.Reader, size int64) error {
	w := &boundedWriter{w: f, left: size}
	_, err := io.Copy(w, r)
	if err == nil && w.left > 0 {
		err = fmt.Errorf("%w: source has %d bytes, want %d", blob.ErrMismatch, size-w.left, size)
	}
	return err
}

// boundedWriter rejects bytes beyond its limit.
type boundedWriter struct {
	w    io.Writer
	left int64
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, fmt.Errorf("%w: source has more bytes than announced", blob.ErrMismatch)
	}
	n, err := b.w.Write(p)
	b.left -= int64(n)
	return n, err
}

func (o *objects) createTemp(temp string) (objectFile, error) {
	f, err := o.files.Create(temp)
	if errors.Is(err, fs.ErrNotExist) {
		if err := o.files.MkdirAll(filepath.Dir(temp)); err != nil {
			return nil, fileError("make directory", err)
		}
		f, err = o.files.Create(temp)
	}
	if err != nil {
		return nil, fileError("create object file", err)
	}
	return f, nil
}

// makeShards makes the shard directories durable, all at once: one by one each would
// cost an fsync. Existing ones may be from another writer that has not synced them yet,
// so finding them is not enough.
func (o *objects) makeShards() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ready {
		return nil
	}
	for i := range 256 {
		if err := o.files.MkdirAll(filepath.Join(o.dir, hex.EncodeToString([]byte{byte(i)}))); err != nil {
			return fileError("make directory", err)
		}
	}
	if err := o.files.SyncDir(o.dir); err != nil {
		return syncError("sync directory", err)
	}
	o.ready = true
	return nil
}

// open opens an object file for reading.
func (o *objects) open(id blob.ID, suffix string) (*os.File, error) {
	return osfile.Open(o.path(id, suffix))
}

// exists reports whether there is an object file. If stat fails, it reports true and
// leaves the error to the read.
func (o *objects) exists(id blob.ID, suffix string) bool {
	_, err := os.Lstat(o.path(id, suffix))
	return !errors.Is(err, fs.ErrNotExist)
}

// temporary calls fn for every name in objects/tmp.
func (o *objects) temporary(fn func(id blob.ID, suffix string) error) error {
	entries, err := os.ReadDir(filepath.Join(o.dir, tempDirName))
	if err != nil {
		return ignoreMissing(err)
	}
	for _, e := range entries {
		id, suffix, ok := parseObjectName("", e.Name())
		if !ok {
			continue // not ours: leave it alone
		}
		if err := fn(id, suffix); err != nil {
			return err
		}
	}
	return nil
}

// walk calls fn for every object file.
func (o *objects) walk(fn func(info fs.FileInfo, id blob.ID, suffix string) error) error {
	shards, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		if !shard.IsDir() || len(shard.Name()) != 2 {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(o.dir, shard.Name()))
		if err != nil {
			return err
		}
		for _, e := range entries {
			id, suffix, ok := parseObjectName(shard.Name(), e.Name())
			if !ok {
				continue // not ours: leave it alone
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if err := fn(info, id, suffix); err != nil {
				return err
			}
		}
	}
	return nil
}

func parseObjectName(shard, name string) (blob.ID, string, bool) {
	rest, suffix, found := strings.Cut(name, ".")
	id, err := blob.ParseID(shard + rest)
	return id, suffix, found && err == nil && suffix != ""
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkStoreFile verifies that objects and database belong together.
func checkStoreFile(dir, id string) error {
	data, err := os.ReadFile(filepath.Join(dir, storeFileName))
	if err != nil {
		return fmt.Errorf("%w: cannot tell whether %s belongs to this database: %w", ErrDamaged, objectsName, err)
	}
	if got := strings.TrimSpace(string(data)); got != id {
		return fmt.Errorf("%w: %s belongs to store %.32q, the database to %q", ErrDamaged, objectsName, got, id)
	}
	return nil
}

// onlyStoreFile reports whether the objects directory holds no objects.
func onlyStoreFile(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), storeFileName) {
			return false
		}
	}
	return true
}

// writeDurably replaces a small file.
func writeDurably(f files, path string, data []byte) error {
	temp := path + newSuffix
	if err := ignoreMissing(f.Remove(temp)); err != nil {
		return fileError("remove leftover", err)
	}
	w, err := f.Create(temp)
	if err != nil {
		return fileError("create "+filepath.Base(path), err)
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Sync()
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = f.Rename(temp, path)
	}
	if err == nil {
		err = f.SyncDir(filepath.Dir(path))
	}
	return fileError("write "+filepath.Base(path), err)
}
