// Package readonly lets SQLite read the databases of other programs. It promises that
// nothing is written to them or beside them, and that no file is created or removed.
package readonly

import (
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// VFS is the name of a VFS that opens everything read-only: a reader of foreign files must
// not write them by mistake, and may lack permission to. The URI parameter shm moves the
// WAL index to a private place.
//
// SQLite opens a WAL for writing and creates a missing one even for a read-only
// connection; this VFS does neither.
const VFS = "stet-foreign"

// Register makes the VFS known to SQLite.
var Register = sync.OnceFunc(func() { vfs.Register(VFS, readVFS{vfs.Find("os")}) })

type readVFS struct{ vfs.VFS }

// OpenFilename opens the database, its WAL or its journal for reading.
func (v readVFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	inner := v.VFS.(vfs.VFSFilename)
	if flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL) == 0 {
		if name != nil {
			return nil, flags, sqlite3.CANTOPEN
		}
		return inner.OpenFilename(name, flags) // a temporary file
	}
	flags &^= vfs.OPEN_READWRITE | vfs.OPEN_CREATE | vfs.OPEN_DELETEONCLOSE
	flags |= vfs.OPEN_READONLY
	file, flags, err := inner.OpenFilename(name, flags)
	if err != nil || flags&vfs.OPEN_MAIN_DB == 0 {
		return file, flags, err
	}
	if private := name.URIParameter("shm"); private != "" {
		file = &privateIndex{File: file, shm: vfs.NewSharedMemory(private, flags)}
	}
	return file, flags, nil
}

// Delete fails: we never remove files beside the user's database.
func (readVFS) Delete(string, bool) error { return sqlite3.READONLY }

// privateIndex is a database file whose WAL index is elsewhere.
type privateIndex struct {
	vfs.File
	shm vfs.SharedMemory
}

// SharedMemory returns the private index.
func (f *privateIndex) SharedMemory() vfs.SharedMemory { return f.shm }

// Close closes the index and the file.
func (f *privateIndex) Close() error {
	if f.shm != nil {
		f.shm.Close()
	}
	return f.File.Close()
}
