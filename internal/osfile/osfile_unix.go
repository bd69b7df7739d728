//go:build unix

package osfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// InUse returns an error as it is: no program keeps others from a file here.
func InUse(err error) error { return err }

// Rename is os.Rename: it replaces what is at the new path.
func Rename(from, to string) error { return os.Rename(from, to) }

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock waits for an exclusive lock, which lasts until Unlock or until the file is closed in
// all processes that have it.
func Lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// Unlock gives a lock up.
func Unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// OpenAlone opens or creates a file that no other caller of OpenAlone has open, and keeps
// it so until it is closed in all processes that have it. If another has it, the error
// wraps ErrInUse.
func OpenAlone(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = &os.PathError{Op: "lock", Path: path, Err: ErrInUse}
	}
	return nil, errors.Join(err, f.Close())
}
