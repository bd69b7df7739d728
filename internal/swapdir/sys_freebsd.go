//go:build !portable

package swapdir

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// openPath opens a directory that can be read.
const openPath = unix.O_RDONLY

// openBeneath leaves it to walk: the system has no call that refuses links on the way.
func openBeneath(int, string) (int, error) { return -1, errors.ErrUnsupported }

// exchange does not exist here: the old file is moved aside before the new one comes.
func exchange(int, string, int, string) error { return errors.ErrUnsupported }

// renameNew does not exist here: a file gets its new name before it loses the old one.
func renameNew(int, string, int, string) error { return errors.ErrUnsupported }

// createUnnamed does not exist here: files are created in the staging directory.
func createUnnamed(int) (int, error) { return -1, errors.ErrUnsupported }

// nameIn is never called, since createUnnamed creates nothing.
func nameIn(int, int, string) error { return errors.ErrUnsupported }

// chmodPath changes the mode of a directory that was opened with openPath.
func chmodPath(fd int, mode uint32) error { return unix.Fchmod(fd, mode) }

// flush makes a file, or the names in a directory, durable.
func flush(fd int) error { return unix.Fsync(fd) }

// flushesAll is whether flushAll saves the flush of each file.
const flushesAll = false

// flushAll does nothing: sync does not wait here, and each file is made durable by itself.
func flushAll(int) (arrived bool, err error) { return false, nil }

func toStat(st *unix.Stat_t) stat {
	return stat{
		dev: st.Dev, ino: st.Ino, size: st.Size, mtime: unix.TimespecToNsec(st.Mtim),
		mode: uint32(st.Mode), dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, uid: int(st.Uid), gid: int(st.Gid),
	}
}

// stampClock returns a time no later than the stamp of a file written now, whose clock may
// lag behind by a tick.
func stampClock() int64 { return time.Now().Add(-20 * time.Millisecond).UnixNano() }
