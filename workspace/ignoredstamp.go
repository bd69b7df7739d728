package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// IgnoredStamp shows whether an ignored file has changed, without its content. The stamp
// of a repository shows only whether it is still there.
type IgnoredStamp struct {
	Path         string
	Size         int64
	Mtime, Ctime int64 // nanoseconds
	Inode        uint64
}

// StampIgnored stamps the files that a scan left out by a rule: each file, and the files
// directly in each such directory. It stamps at most limit files and reports
// whether there were more. It skips files for which captured returns true, and files
// that cannot be read; the result is sorted by path.
func StampIgnored(root string, skipped []Skipped, limit int, captured func(path string) bool) (stamps []IgnoredStamp, more bool, err error) {
	dir, err := openRoot(root)
	if err != nil {
		return nil, false, err
	}
	defer dir.close()
	names, err := os.OpenRoot(root)
	if err != nil {
		return nil, false, err
	}
	defer names.Close()
	add := func(path string) {
		if captured(path) {
			return
		}
		if stamp, ok := stampAt(dir, path); ok {
			stamps = append(stamps, stamp)
		}
	}
	for _, k := range skipped {
		switch {
		case !k.Reason.ByRule():
			continue
		case len(stamps) >= limit:
			return sortStamps(stamps), true, nil
		case !k.Dir:
			add(k.Path)
			continue
		}
		files, rest := filesIn(names, k.Path, limit-len(stamps))
		more = more || rest
		for _, name := range files {
			add(join(k.Path, name))
		}
	}
	return sortStamps(stamps), more, nil
}

func sortStamps(stamps []IgnoredStamp) []IgnoredStamp {
	slices.SortFunc(stamps, func(a, b IgnoredStamp) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(stamps, func(a, b IgnoredStamp) bool { return a.Path == b.Path })
}

// filesIn returns up to limit names of regular files in a directory.
func filesIn(root *os.Root, path string, limit int) (names []string, more bool) {
	// It may have become a FIFO without a writer. The slash makes open fail for anything but
	// a directory.
	dir, err := root.OpenFile(path+"/", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	entries, err := dir.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false
	}
	for _, e := range entries[:min(limit, len(entries))] {
		if e.Type().IsRegular() && !isGit(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, len(entries) > limit
}

// stampAt stamps one file, or a repository.
func stampAt(root dirFD, path string) (IgnoredStamp, bool) {
	dir, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	fd, err := root.openDir(dir)
	if err != nil {
		return IgnoredStamp{}, false
	}
	defer fd.close()
	st, err := fd.lstat(name)
	switch {
	case err != nil:
		return IgnoredStamp{}, false
	case isGit(name):
		return repositoryStamp(path, st), true
	case st.kind != isFile:
		return IgnoredStamp{}, false
	}
	return IgnoredStamp{Path: path, Size: st.size, Mtime: st.mtime, Ctime: st.ctime, Inode: st.ino}, true
}

// ChangedIgnored lists the paths whose files no longer match the stamps. It lists all of
// them if the root is gone.
func ChangedIgnored(root string, stamps []IgnoredStamp) ([]string, error) {
	if len(stamps) == 0 {
		return nil, nil
	}
	dir, err := openRoot(root)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return nil, err
	}
	if !gone {
		defer dir.close()
	}
	var changed []string
	for _, was := range stamps {
		if gone {
			changed = append(changed, was.Path)
		} else if now, ok := stampAt(dir, was.Path); !ok || now != was {
			changed = append(changed, was.Path)
		}
	}
	return changed, nil
}
