package workspace

import (
	"encoding/binary"
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// Numbers of file systems that package unix does not name.
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
	ntfsMagic     = 0x5346544e
	ntfs3Magic    = 0x7366746e
	casefoldFlag  = 0x40000000 // of a directory
)

// onlyReadOnly is whether write permission is the only one that is stored.
const onlyReadOnly = false

// fileSystem returns the number of the file system that a directory is on, or 0.
func fileSystem(dir string) uint32 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0
	}
	return uint32(st.Type)
}

// knownTraits returns the traits of file systems that are the same everywhere, without
// probing. For others it returns the usual traits.
func knownTraits(dir string) (t Traits, known bool) {
	t = Traits{Swaps: true, Links: true, Modes: true, SyncsDirs: true}
	switch fileSystem(dir) {
	case unix.EXT4_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return t, !foldingDir(dir)
	case unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfsMagic, bcachefsMagic:
		return t, true
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, ntfsMagic, ntfs3Magic:
		t = Traits{FoldsCase: true, SyncsDirs: true}
	}
	return t, false
}

// foldingDir reports whether a directory has the attribute that makes it fold names,
// which directories below it inherit.
func foldingDir(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefoldFlag != 0
}

// knownModes reports whether a file system stores permission bits, if that is known.
func knownModes(dir string) (modes, known bool) {
	switch fileSystem(dir) {
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, ntfsMagic, ntfs3Magic:
		return false, true
	case unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.SMB_SUPER_MAGIC:
		return false, false
	}
	return true, true
}

// mayFold reports whether a directory may take several spellings for one name.
func mayFold(dir string) bool {
	t, known := knownTraits(dir)
	return !known || t.FoldsCase || t.Normalises
}

// volumeOf identifies the file system that a directory is on.
func volumeOf(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	id := binary.LittleEndian.AppendUint32(nil, uint32(st.Type))
	id = binary.LittleEndian.AppendUint32(id, uint32(st.Fsid.Val[0]))
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(id, uint32(st.Fsid.Val[1])))
}
