//go:build portable || !linux

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/stet-dev/stet/fault"
)

// dirFD is an open directory. The zero value is none.
type dirFD struct{ root *os.Root }

// openRoot opens the root directory of a scan. The root itself may be reached through
// links, because the user names it.
func openRoot(path string) (dirFD, error) {
	r, err := os.OpenRoot(path)
	return dirFD{r}, err
}

func (d dirFD) close() { d.root.Close() }

// openDir opens a directory below d by its path, following no link on the way:
// os.Root follows links inside the root, so the opened directory is compared with
// lstat.
func (d dirFD) openDir(path string) (dirFD, error) {
	if path == "" {
		path = "."
	}
	cur := d
	for name := range strings.SplitSeq(path, "/") {
		next, err := cur.step(name)
		if cur != d {
			cur.close()
		}
		if err != nil {
			return dirFD{}, err
		}
		cur = next
	}
	return cur, nil
}

func (d dirFD) step(name string) (dirFD, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return dirFD{}, err
	}
	if !before.IsDir() {
		return dirFD{}, errSwapped
	}
	r, err := d.root.OpenRoot(name)
	if err != nil {
		return dirFD{}, err
	}
	after, err := r.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errSwapped
	}
	if err != nil {
		r.Close()
		return dirFD{}, err
	}
	return dirFD{r}, nil
}

// openFile opens a regular file for reading without following a link and
// without waiting for the other end of a FIFO.
func (d dirFD) openFile(name string) (*openedFile, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, errSwapped
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = errSwapped
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &openedFile{f}, nil
}

func (d dirFD) lstat(name string) (fileStat, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return fileStat{}, err
	}
	return statOf(info, func() (identity, error) { return identify(d.root, name, info) })
}

func (d dirFD) stat() (fileStat, error) { return d.lstat(".") }

func (d dirFD) readlink(name string) (string, error) { return d.root.Readlink(name) }

// list returns the names in a directory in no order. The scratch space is for
// systems that need it.
func (d dirFD) list([]byte) ([]dirent, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	ents := make([]dirent, len(found))
	for i, e := range found {
		ents[i] = dirent{name: e.Name(), kind: kindOf(e.Type())}
	}
	return ents, nil
}

func kindOf(m fs.FileMode) fileKind {
	switch {
	case m.IsRegular():
		return isFile
	case m.IsDir():
		return isDir
	case m&fs.ModeSymlink != 0:
		return isLink
	}
	return isSpecial
}

// identity is what package os does not report about a file on all systems.
type identity struct {
	ino, dev, links uint64
	ctime           int64 // nanoseconds
	uid             int64
}

func statOf(info fs.FileInfo, identify func() (identity, error)) (fileStat, error) {
	s := fileStat{kind: kindOf(info.Mode()), mode: uint32(info.Mode().Perm()), size: info.Size(), mtime: info.ModTime().UnixNano()}
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if info.Mode()&flag != 0 {
			s.mode |= bit
		}
	}
	id, err := identify()
	s.ino, s.dev, s.links, s.ctime, s.uid = id.ino, id.dev, id.links, id.ctime, id.uid
	return s, err
}

// openedFile is a file opened for reading.
type openedFile struct{ f *os.File }

// attributes reports none: extended attributes are not looked up on this system.
func (f *openedFile) attributes() bool { return false }

func (f *openedFile) Read(p []byte) (int, error) { return f.f.Read(p) }

func (f *openedFile) rewind() error {
	_, err := f.f.Seek(0, io.SeekStart)
	return err
}

func (f *openedFile) stat() (fileStat, error) {
	info, err := f.f.Stat()
	if err != nil {
		return fileStat{}, err
	}
	return statOf(info, func() (identity, error) { return identifyOpen(f.f, info) })
}

func (f *openedFile) close() { f.f.Close() }

// stampClock returns a time no later than the stamp of a file written now; its clock
// may lag behind by a tick.
func stampClock() int64 { return time.Now().Add(-20 * time.Millisecond).UnixNano() }

// eraOf returns none: no file system here has reliable directory stamps.
func eraOf(dirFD, uint64) era { return era{} }

var errSwapped = fault.New(fault.Stale, "changed its kind")

// isGone reports whether an error means that a name vanished.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// isSwapped reports whether an error means that the kind of a name has changed since
// it was listed.
func isSwapped(err error) bool { return errors.Is(err, errSwapped) }
