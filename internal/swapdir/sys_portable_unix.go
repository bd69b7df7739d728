//go:build portable && unix

package swapdir

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	hasModes   = true
	syncsDirs  = true
	flushesAll = true // syncAll never does: files are flushed one by one, after all were written
)

func statIn(root *os.Root, path string) (stat, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return stat{}, err
	}
	return toStat(info), nil
}

func statFile(f *os.File) (stat, error) {
	info, err := f.Stat()
	if err != nil {
		return stat{}, err
	}
	return toStat(info), nil
}

func toStat(info fs.FileInfo) stat {
	st := info.Sys().(*syscall.Stat_t)
	return stat{
		dev: uint64(st.Dev), ino: st.Ino, size: info.Size(), mtime: info.ModTime().UnixNano(),
		mode: uint32(st.Mode), dir: info.IsDir(), uid: int(st.Uid), gid: int(st.Gid),
	}
}

// give gives a file to its owner and group. Others than root do what they can:
// a group that they are not in is lost, as with every editor.
func give(f *os.File, own owner) error {
	st, err := statFile(f)
	if err != nil {
		return err
	}
	root := os.Geteuid() == 0
	switch {
	case root && (st.uid != own.uid || st.gid != own.gid):
		return f.Chown(own.uid, own.gid)
	case !root && own.gid >= 0 && st.gid != own.gid:
		_ = f.Chown(-1, own.gid)
	}
	return nil
}

// renameNew renames without ever replacing. A file gets a second name first, which fails
// if it is taken; a crash then may leave both, see untwin.
func renameNew(root *os.Root, from, to string) error {
	st, err := statIn(root, from)
	if err != nil {
		return err
	}
	if !st.dir {
		if err := root.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
			if err == nil {
				err = root.Remove(from)
			}
			return err
		}
	}
	// Where names fold, a look may find for a second what had another spelling.
	for range 100 {
		if _, err := root.Lstat(to); err != nil {
			return root.Rename(from, to)
		}
		if there, err := listed(root, to); there || err != nil {
			return cmp.Or(err, fs.ErrExist)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return syscall.EBUSY
}

// listed reports whether a directory lists a name, in whatever case.
func listed(root *os.Root, path string) (bool, error) {
	dir, name := splitPath(path)
	d, err := root.Open(cmp.Or(dir, "."))
	if err != nil {
		return false, err
	}
	names, err := d.Readdirnames(-1)
	there := slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	return there, errors.Join(err, d.Close())
}

func isOtherDevice(err error) bool { return errors.Is(err, syscall.EXDEV) }

// stampClock returns a time no later than the stamp of a file written now, whose clock may
// lag behind by a tick.
func stampClock() int64 { return time.Now().Add(-20 * time.Millisecond).UnixNano() }
