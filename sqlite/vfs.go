package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3/vfs"
)

// disk is the file system of one DB's database, the library's own with two additions.
// It remembers why a write failed: the library keeps the cause of an error only until
// its next system call, and rolling back makes many, so a full disk would look like a
// broken one. And it keeps the mark in the database that identifies its log.
type disk struct {
	vfs.VFSFilename
	name     string
	readOnly bool              // creates and writes no files
	frozen   bool              // see frozen.go
	syncing  func(begins bool) // called around each sync of the log; or nil

	mu        sync.Mutex // guards what follows
	cause     error
	databases map[string]*databaseFile // writable ones, by path
}

var disks atomic.Int64

// newDisk registers a disk on top of the named file system.
func newDisk(below string) (*disk, error) {
	inner, ok := vfs.Find(below).(vfs.VFSFilename)
	if !ok {
		return nil, fmt.Errorf("%w: unknown file system %q", ErrUnsupported, below)
	}
	d := &disk{
		VFSFilename: inner, name: fmt.Sprintf("stet%d", disks.Add(1)),
		databases: make(map[string]*databaseFile),
	}
	vfs.Register(d.name, d)
	return d, nil
}

// release is called once no connection uses the disk.
func (d *disk) release() { vfs.Unregister(d.name) }

// forget drops the cause of an earlier failure.
func (d *disk) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cause = nil
}

// note remembers the first failure since forget.
func (d *disk) note(err error) error {
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cause == nil {
		d.cause = err
	}
	return err
}

// explain adds the cause to an error of the library.
func (d *disk) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cause == nil || errors.Is(err, d.cause) {
		return err
	}
	return sqlError(doing, fmt.Errorf("%w: %w", err, d.cause))
}

// osFile is the set of methods of the library's own files that SQLite uses.
type osFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

// OpenFilename implements vfs.VFSFilename.
func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := d.openFile(name, flags)
	if err != nil {
		return nil, flags, d.note(err)
	}
	if flags&vfs.OPEN_CREATE != 0 && name != nil {
		narrow(name.String(), privateFile)
	}
	inner, ok := file.(osFile)
	if !ok {
		return file, flags, nil
	}
	on := diskFile{osFile: inner, disk: d}
	switch {
	case flags&vfs.OPEN_MAIN_DB != 0 && d.frozen:
		return &frozenDatabase{databaseFile: d.openDatabase(on, name.String(), flags)}, flags, nil
	case flags&vfs.OPEN_MAIN_DB != 0:
		return d.openDatabase(on, name.String(), flags), flags, nil
	case flags&vfs.OPEN_WAL != 0:
		return openLog(on, name), flags, nil
	}
	return &on, flags, nil
}

func (d *disk) openFile(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if d.frozen && flags&vfs.OPEN_WAL != 0 {
		return d.openReadOnly(name, flags)
	}
	file, out, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil && d.readOnly && flags&vfs.OPEN_WAL != 0 {
		return d.openReadOnly(name, flags)
	}
	return file, out, err
}

// openDatabase remembers a writable database: removing its log changes its mark, too.
func (d *disk) openDatabase(on diskFile, path string, flags vfs.OpenFlag) *databaseFile {
	f := &databaseFile{diskFile: on, path: path}
	if flags&vfs.OPEN_READWRITE != 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.databases[path] = f
	}
	return f
}

func (d *disk) closed(f *databaseFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.databases[f.path] == f {
		delete(d.databases, f.path)
	}
}

// Delete implements vfs.VFS. The library removes a log once all its frames are in the
// database and no other connection uses it. The mark records that first.
func (d *disk) Delete(path string, syncDir bool) error {
	if base, isLog := strings.CutSuffix(path, logSuffix); isLog {
		d.mu.Lock()
		database := d.databases[base]
		d.mu.Unlock()
		if database != nil {
			if err := database.dropLog(); err != nil {
				return d.note(err)
			}
		}
	}
	err := d.VFSFilename.Delete(path, syncDir)
	if _, missing := os.Lstat(path); missing != nil {
		return err // SQLite also deletes missing files
	}
	return d.note(err)
}

type diskFile struct {
	osFile
	disk *disk
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.osFile.WriteAt(p, off)
	return n, f.disk.note(err)
}

func (f *diskFile) Truncate(size int64) error { return f.disk.note(f.osFile.Truncate(size)) }

func (f *diskFile) SizeHint(size int64) error { return f.disk.note(f.osFile.SizeHint(size)) }

func (f *diskFile) Sync(flags vfs.SyncFlag) error { return f.disk.note(f.osFile.Sync(flags)) }
