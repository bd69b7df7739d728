package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
)

// op is a kind of change that a store makes to the disk.
type op int

const (
	opCreate op = iota
	opWrite
	opTruncate
	opSync
	opSyncFailed // the kernel has dropped what was not written
	opLink
	opUnlink
	opRename
	opMkdir
	opSyncDir
	opMark // something that the workload wants to find again
)

func (o op) String() string {
	return [...]string{"create", "write", "truncate", "sync", "failed sync", "link", "unlink", "rename", "mkdir", "syncdir", "mark"}[o]
}

// change is one recorded operation. Paths are relative to the store.
type change struct {
	op       op
	file     int // inode
	path, to string
	off      int64 // of a write; the size of a truncate
	data     []byte
}

// errShort makes a recorder write half of the data and fail.
var errShort = errors.New("short write")

// recorder stands between a store and the operating system: as the library's VFS
// for the database and as files for the objects. It remembers all changes in
// their order and can make any of them fail.
type recorder struct {
	name string // of the registered VFS
	root string

	mu      sync.Mutex // guards the fields below, and orders the changes
	changes []change
	inodes  map[string]int
	next    int
	fault   func(change) error // what to fail with, before it happens
}

var recorders atomic.Int64

// newRecorder records what happens to the files of a store at root.
func newRecorder(t testing.TB, root string) *recorder {
	r := &recorder{name: fmt.Sprintf("rec%d", recorders.Add(1)), root: root, inodes: make(map[string]int), next: 1}
	vfs.Register(r.name, recVFS{vfs.Find("os").(vfs.VFSFilename), r})
	t.Cleanup(func() { vfs.Unregister(r.name) })
	return r
}

// options returns options for a store on the recorder: small objects, so that
// crash images are small too.
func (r *recorder) options() *Options {
	return &Options{VFS: r.name, files: recFiles{r}, ObjectSize: crashObjectSize, Readers: 2, shrinkPages: 4}
}

// do makes a change and remembers it.
func (r *recorder) do(c change, act func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doLocked(c, act)
}

func (r *recorder) doLocked(c change, act func() error) error {
	c.path = r.relative(c.path)
	if c.to != "" {
		c.to = r.relative(c.to)
	}
	if r.fault != nil {
		if err := r.fault(c); err != nil {
			if c.op == opSync {
				c.op = opSyncFailed
				r.changes = append(r.changes, c)
			}
			return err
		}
	}
	if err := act(); err != nil {
		return err
	}
	r.renameLocked(&c)
	r.changes = append(r.changes, c)
	return nil
}

// renameLocked keeps the names of inodes as they are now, and gives links the
// inode that they lead to.
func (r *recorder) renameLocked(c *change) {
	switch c.op {
	case opCreate:
		r.inodes[c.path] = c.file
	case opLink:
		c.file = r.inodes[c.path]
		r.inodes[c.to] = c.file
	case opRename:
		c.file = r.inodes[c.path]
		r.inodes[c.to] = c.file
		delete(r.inodes, c.path)
	case opUnlink:
		delete(r.inodes, c.path)
	}
}

func (r *recorder) relative(path string) string {
	rel := filepath.ToSlash(strings.TrimPrefix(path, r.root))
	return strings.TrimPrefix(rel, "/")
}

// mark puts a mark into the record and returns its position.
func (r *recorder) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, change{op: opMark})
	return len(r.changes) - 1
}

// setFault changes what fails from now on.
func (r *recorder) setFault(fault func(change) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// write performs a write that may be cut short by an injected fault.
func (r *recorder) write(c change, act func([]byte) (int, error)) (int, error) {
	var n int
	data := c.data
	c.data = append([]byte(nil), data...)
	err := r.do(c, func() (err error) { n, err = act(data); return err })
	if errors.Is(err, errShort) {
		half := c
		half.data = c.data[:len(c.data)/2]
		r.mu.Lock()
		defer r.mu.Unlock()
		if n, actErr := act(half.data); actErr != nil {
			return n, actErr
		}
		half.path = r.relative(half.path)
		r.changes = append(r.changes, half)
		return len(half.data), io.ErrShortWrite
	}
	return n, err
}

// recVFS is the recording VFS.
type recVFS struct {
	vfs.VFSFilename
	rec *recorder
}

func (v recVFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL) == 0 {
		return v.VFSFilename.OpenFilename(name, flags)
	}
	v.rec.mu.Lock()
	defer v.rec.mu.Unlock()
	path := name.String()
	var file vfs.File
	open := func() (err error) {
		file, flags, err = v.VFSFilename.OpenFilename(name, flags)
		return err
	}
	var err error
	if _, statErr := os.Lstat(path); statErr == nil || flags&vfs.OPEN_CREATE == 0 {
		err = open()
	} else {
		v.rec.next++
		err = v.rec.doLocked(change{op: opCreate, path: path, file: v.rec.next}, open)
	}
	if err != nil {
		return nil, flags, err
	}
	inode := v.rec.inodes[v.rec.relative(path)]
	return &recFile{osFile: file.(osFile), rec: v.rec, path: path, inode: inode}, flags, nil
}

func (v recVFS) Delete(path string, syncDir bool) error {
	err := v.rec.do(change{op: opUnlink, path: path}, func() error { return v.VFSFilename.Delete(path, false) })
	if err == nil && syncDir {
		err = recFiles{v.rec}.SyncDir(filepath.Dir(path))
	}
	return err
}

type recFile struct {
	osFile
	rec   *recorder
	path  string
	inode int
}

func (f *recFile) WriteAt(p []byte, off int64) (int, error) {
	return f.rec.write(change{op: opWrite, path: f.path, file: f.inode, off: off, data: p}, func(p []byte) (int, error) {
		return f.osFile.WriteAt(p, off)
	})
}

func (f *recFile) Truncate(size int64) error {
	return f.rec.do(change{op: opTruncate, path: f.path, file: f.inode, off: size}, func() error { return f.osFile.Truncate(size) })
}

func (f *recFile) SizeHint(size int64) error {
	if now, err := f.Size(); err != nil || size <= now {
		return err
	}
	return f.rec.do(change{op: opTruncate, path: f.path, file: f.inode, off: size}, func() error { return f.osFile.SizeHint(size) })
}

func (f *recFile) Sync(flags vfs.SyncFlag) error {
	return f.rec.do(change{op: opSync, path: f.path, file: f.inode}, func() error { return f.osFile.Sync(flags) })
}

// recFiles are the recording object files.
type recFiles struct{ rec *recorder }

func (r recFiles) MkdirAll(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if c := (change{op: opMkdir, path: r.rec.relative(dir)}); isShard(c) {
		// There are 255 more like it: remember it, and do not fail at each.
		r.rec.mu.Lock()
		defer r.rec.mu.Unlock()
		r.rec.changes = append(r.rec.changes, c)
		return osFiles{}.MkdirAll(dir)
	}
	return r.rec.do(change{op: opMkdir, path: dir}, func() error { return osFiles{}.MkdirAll(dir) })
}

// isShard reports whether a change makes one of the directories of objects but
// the first.
func isShard(c change) bool {
	name := filepath.Base(c.path)
	return c.op == opMkdir && len(name) == 2 && name != "00"
}

func (r recFiles) Create(path string) (objectFile, error) {
	r.rec.mu.Lock()
	defer r.rec.mu.Unlock()
	r.rec.next++
	o := &recObject{rec: r.rec, path: path, inode: r.rec.next}
	err := r.rec.doLocked(change{op: opCreate, path: path, file: o.inode}, func() (err error) {
		o.objectFile, err = osFiles{}.Create(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (r recFiles) Rename(from, to string) error {
	return r.rec.do(change{op: opRename, path: from, to: to}, func() error { return osFiles{}.Rename(from, to) })
}

func (r recFiles) Link(from, to string) error {
	return r.rec.do(change{op: opLink, path: from, to: to}, func() error { return osFiles{}.Link(from, to) })
}

func (r recFiles) Remove(path string) error {
	return r.rec.do(change{op: opUnlink, path: path}, func() error { return osFiles{}.Remove(path) })
}

func (r recFiles) SyncDir(dir string) error {
	if r.rec.relative(dir) == dir { // the parent, which is not ours to lose
		return osFiles{}.SyncDir(dir)
	}
	return r.rec.do(change{op: opSyncDir, path: dir}, func() error { return osFiles{}.SyncDir(dir) })
}

type recObject struct {
	objectFile
	rec   *recorder
	path  string
	inode int
	size  int64
}

func (o *recObject) Write(p []byte) (int, error) {
	n, err := o.rec.write(change{op: opWrite, path: o.path, file: o.inode, off: o.size, data: p}, o.objectFile.Write)
	o.size += int64(n)
	return n, err
}

func (o *recObject) Sync() error {
	return o.rec.do(change{op: opSync, path: o.path, file: o.inode}, o.objectFile.Sync)
}
