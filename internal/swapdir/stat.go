package swapdir

// stat is what tells one state of an object from another.
type stat struct {
	dev, ino uint64
	size     int64
	mtime    int64  // nanoseconds
	mode     uint32 // permission bits, and what else the system has in it
	dir      bool
	uid, gid int
}

// same reports whether two looks saw the same, unchanged object. The change time is
// left out, since moving a file changes it, and the size and times of
// directories, which follow what they hold.
func (s stat) same(o stat) bool {
	if s.dir && o.dir {
		return s.dev == o.dev && s.ino == o.ino
	}
	return s.dev == o.dev && s.ino == o.ino && s.size == o.size && s.mtime == o.mtime && s.mode == o.mode
}

// twin reports whether two names are names of one file.
func (s stat) twin(o stat) bool { return !s.dir && s.dev == o.dev && s.ino == o.ino }

// staged returns what a journal keeps of a staged object.
func (s stat) staged() Staged {
	return Staged{Inode: s.ino, Size: s.size, Mtime: s.mtime, Dir: s.dir}
}
