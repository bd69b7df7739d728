package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/stet-dev/stet/kv"
)

// A store that we cannot write is frozen if no other process uses it either: the index
// of the log in shared memory does not exist, and we cannot create one or its disk has no
// room for one. Each connection then builds its own index. It does not see later commits of
// processes that may write, so it is used only while the files stay unchanged.

// isFrozen reports whether a store opened for reading is frozen.
func (db *DB) isFrozen() bool {
	path := db.path() + indexSuffix
	if !db.opts.full { // the index has a size only once it is used
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, privateFile)
		if err == nil {
			f.Close()
			return false
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	return !indexInUse(f)
}

// frozenDatabase is a database read with a private index of the log. The library wants
// an exclusive lock for that, which we cannot give.
type frozenDatabase struct {
	*databaseFile
	level vfs.LockLevel
}

// SharedMemory implements vfs.FileSharedMemory: there is none.
func (f *frozenDatabase) SharedMemory() vfs.SharedMemory { return nil }

// Lock implements vfs.File. A shared lock keeps others from removing the log.
func (f *frozenDatabase) Lock(level vfs.LockLevel) error {
	if f.level < vfs.LOCK_SHARED {
		if err := f.databaseFile.Lock(vfs.LOCK_SHARED); err != nil {
			return err
		}
	}
	f.level = max(f.level, level)
	return nil
}

// Unlock implements vfs.File.
func (f *frozenDatabase) Unlock(level vfs.LockLevel) error {
	f.level = min(f.level, level)
	if level == vfs.LOCK_NONE {
		return f.databaseFile.Unlock(level)
	}
	return nil
}

// CheckReservedLock implements vfs.File.
func (f *frozenDatabase) CheckReservedLock() (bool, error) { return false, nil }

// LockState implements vfs.FileLockState.
func (f *frozenDatabase) LockState() vfs.LockLevel { return f.level }

// openReadOnly opens a file that cannot be written. If there is no log, it returns an
// empty one, because the library would create one.
func (d *disk) openReadOnly(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	flags = flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE) | vfs.OPEN_READONLY
	file, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if errors.Is(err, fs.ErrNotExist) {
		return emptyLog{}, flags, nil
	}
	return file, flags, err
}

// emptyLog is a log that does not exist. It is never written.
type emptyLog struct{}

func (emptyLog) Close() error                                    { return nil }
func (emptyLog) ReadAt([]byte, int64) (int, error)               { return 0, io.EOF }
func (emptyLog) WriteAt([]byte, int64) (int, error)              { return 0, syscall.EROFS }
func (emptyLog) Truncate(int64) error                            { return syscall.EROFS }
func (emptyLog) Sync(vfs.SyncFlag) error                         { return nil }
func (emptyLog) Size() (int64, error)                            { return 0, nil }
func (emptyLog) Lock(vfs.LockLevel) error                        { return nil }
func (emptyLog) Unlock(vfs.LockLevel) error                      { return nil }
func (emptyLog) CheckReservedLock() (bool, error)                { return false, nil }
func (emptyLog) SectorSize() int                                 { return 0 }
func (emptyLog) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }

// fileStamp shows whether a file has changed.
type fileStamp struct {
	size int64
	time time.Time
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{size: -1}
	}
	return fileStamp{info.Size(), info.ModTime()}
}

// stamp is the state of the database and its log.
type stamp struct{ database, log fileStamp }

func (db *DB) stamp() stamp {
	return stamp{stampOf(db.path()), stampOf(db.path() + logSuffix)}
}

// errThawed means that the data read may mix old and new.
var errThawed = fmt.Errorf("%w: another process changed it during the read; try again", kv.ErrBusy)
