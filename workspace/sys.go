package workspace

// fileKind is the kind of a name in the file system.
type fileKind uint8

const (
	isUnknown fileKind = iota
	isFile
	isDir
	isLink
	isSpecial // FIFO, socket, device
	isMissing // is not listed
)

// dirent is a name in a directory.
type dirent struct {
	name string
	kind fileKind
}

// fileStat is the part of stat data that shows whether a file has changed.
type fileStat struct {
	kind         fileKind
	mode         uint32 // permission bits
	size         int64
	mtime, ctime int64 // nanoseconds
	ino          uint64
	dev          uint64 // 0 if not available
	links        uint64 // number of names; 0 if not available
	uid          int64  // owner; -1 if not available
}
