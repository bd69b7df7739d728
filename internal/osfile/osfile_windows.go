package osfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// InUse makes an error wrap ErrInUse if it says that another program keeps a file to itself.
func InUse(err error) error {
	for _, kept := range []error{windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_USER_MAPPED_FILE} {
		if errors.Is(err, kept) && !errors.Is(err, ErrInUse) {
			return fmt.Errorf("%w: %w", ErrInUse, err)
		}
	}
	return err
}

// Rename is os.Rename: it replaces what is at the new path. While another program reads
// that, the system denies it, as it does for lack of permission: both are tried again.
func Rename(from, to string) error {
	var last error
	err := Try(func() error {
		if last = os.Rename(from, to); errors.Is(last, fs.ErrPermission) {
			return ErrInUse
		}
		return last
	})
	if errors.Is(last, fs.ErrPermission) {
		return last
	}
	return err
}

// SyncDir does nothing: handles of directories cannot be flushed. Names become durable with
// the journal of the file system.
func SyncDir(string) error { return nil }

// Lock waits for an exclusive lock, which lasts until Unlock or until the file is closed. It
// is on a byte far behind the end, since others cannot read what is locked.
func Lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, behindTheEnd())
}

// Unlock gives a lock up.
func Unlock(f *os.File) {
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, behindTheEnd())
}

func behindTheEnd() *windows.Overlapped {
	return &windows.Overlapped{Offset: math.MaxUint32, OffsetHigh: math.MaxInt32}
}

// OpenAlone opens or creates a file that no other program has open, and keeps it so until
// it is closed in all processes that have it. If another has it, the error wraps ErrInUse.
func OpenAlone(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil,
		windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: InUse(err)}
	}
	return os.NewFile(uintptr(h), path), nil
}
