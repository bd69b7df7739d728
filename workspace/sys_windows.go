package workspace

import (
	"io/fs"
	"os"

	"github.com/stet-dev/stet/internal/osfile"
)

// holdsIndex is whether an index file stays open while the index is used. An open file
// cannot be replaced on every system: the index is read into memory, and its file is
// replaced as a whole.
const holdsIndex = false

func identify(root *os.Root, name string, _ fs.FileInfo) (identity, error) {
	return identityOf(osfile.StatAt(root, name))
}

func identifyOpen(f *os.File, _ fs.FileInfo) (identity, error) { return identityOf(osfile.StatOf(f)) }

func identityOf(s osfile.Stat, err error) (identity, error) {
	return identity{ino: s.Index, dev: s.Volume, links: s.Links, ctime: s.Ctime, uid: -1}, err
}
