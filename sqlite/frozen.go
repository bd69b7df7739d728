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

// A store that we cannot write is frozen if nobody uses it either: there is no index
// of the log in shared memory, and we cannot make one. Each connection then keeps an
// index of its own. It does not see what others commit, who may be allowed to write:
// so it is used only as long as the files are as they were.

// isFrozen finds out whether a store that is opened for reading is frozen.
func (db *DB) isFrozen() bool {
	path := db.path() + indexSuffix
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, privateFile)
	if err == nil {
		f.Close()
		return false
	}
	if f, err = os.Open(path); err != nil {
		return true
	}
	defer f.Close()
	return !indexInUse(f)
}

// frozenDatabase is a database that is read with an index of the log that nobody
// shares. The library wants it for itself then, which we cannot give.
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

// openReadOnly opens a file that cannot be written, and gives an empty log where
// there is none: the library would make one.
func (d *disk) openReadOnly(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	flags = flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE) | vfs.OPEN_READONLY
	file, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if errors.Is(err, fs.ErrNotExist) {
		return emptyLog{}, flags, nil
	}
	return file, flags, err
}

// emptyLog is a log that does not exist. Nobody writes to it.
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

// fileStamp tells whether a file changed.
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

// stamp is what the database and its log looked like.
type stamp struct{ database, log fileStamp }

func (db *DB) stamp() stamp {
	return stamp{stampOf(db.path()), stampOf(db.path() + logSuffix)}
}

// errThawed says that what was read may be a mix of before and after.
var errThawed = fmt.Errorf("%w: it was changed while it was read, by somebody who may write to it; try again", kv.ErrBusy)
