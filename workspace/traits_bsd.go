//go:build darwin || freebsd

package workspace

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// onlyReadOnly is whether write permission is the only one that is stored.
const onlyReadOnly = false

// fileSystem returns the name of the file system that a directory is on, or "".
func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	var name []byte
	for _, c := range st.Fstypename {
		name = append(name, byte(c))
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	return string(name)
}

// knownTraits returns the traits of file systems that are the same everywhere, without
// probing. For others it returns the usual traits.
func knownTraits(dir string) (t Traits, known bool) {
	switch fileSystem(dir) {
	case "ufs", "zfs":
		return Traits{Links: true, Modes: true, SyncsDirs: true}, true
	case "msdos", "msdosfs", "exfat", "ntfs":
		return Traits{FoldsCase: true, SyncsDirs: true}, false
	}
	return Traits{FoldsCase: true, Normalises: true, Swaps: true, Links: true, Modes: true, SyncsDirs: true}, false
}

// knownModes reports whether a file system stores permission bits, if that is known.
func knownModes(dir string) (modes, known bool) {
	switch fileSystem(dir) {
	case "apfs", "hfs", "ufs", "zfs", "nfs":
		return true, true
	case "msdos", "msdosfs", "exfat", "ntfs":
		return false, true
	}
	return true, false
}

// mayFold reports whether a directory may take several spellings for one name.
func mayFold(dir string) bool {
	_, known := knownTraits(dir)
	return !known
}

// volumeOf identifies the file system that a directory is on.
func volumeOf(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return fmt.Sprint(st.Fsid)
}
