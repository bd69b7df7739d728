package swapdir

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"

	"github.com/stet-dev/stet/internal/osfile"
)

const (
	hasModes   = false // but for the read-only bit of files
	syncsDirs  = false // handles of directories cannot be flushed
	flushesAll = false // files are flushed one by one, while they are open
)

func statIn(root *os.Root, path string) (stat, error) { return toStat(osfile.StatAt(root, path)) }

func statFile(f *os.File) (stat, error) { return toStat(osfile.StatOf(f)) }

func toStat(s osfile.Stat, err error) (stat, error) {
	st := stat{dev: s.Volume, ino: s.Index, size: s.Size, mtime: s.Mtime, dir: s.Dir, uid: -1, gid: -1}
	for bit, set := range map[uint32]bool{0o200: !s.ReadOnly, 0o120000: s.Reparse} {
		if set {
			st.mode |= bit
		}
	}
	return st, err
}

// give does nothing: new files belong to whoever makes them.
func give(*os.File, owner) error { return nil }

// renameNew renames without ever replacing.
func renameNew(root *os.Root, from, to string) error { return osfile.RenameNew(root, from, to) }

func isOtherDevice(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }

// stampClock returns a time no later than the stamp of a file written now, whose clock may
// lag behind by a tick.
func stampClock() int64 { return time.Now().Add(-20 * time.Millisecond).UnixNano() }
