package workspace

// fileKind is what the file system says a name is.
type fileKind uint8

const (
	isUnknown fileKind = iota
	isFile
	isDir
	isLink
	isSpecial // FIFO, socket, device
)

// dirent is a name in a directory.
type dirent struct {
	name string
	kind fileKind
}

// fileStat is the part of stat data that tells whether a file changed.
type fileStat struct {
	kind         fileKind
	mode         uint32 // permission bits
	size         int64
	mtime, ctime int64 // nanoseconds
	ino          uint64
	dev          uint64 // 0 where the system does not tell
}
