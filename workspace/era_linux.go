//go:build !portable

package workspace

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// namesKept changes when indexes begin to keep more names of a directory: a scan then
// lists every directory once. Version 1 keeps those of repositories.
const namesKept = 1

// bootID returns the random boot id of the kernel, or nil.
var bootID = sync.OnceValue(func() []byte {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	return id
})

// eraOf returns the era of the file system that a directory is on. Only local file
// systems reliably stamp a directory at each change of a name: others may see changes
// late, or be changed from outside.
func eraOf(d dirFD, dev uint64) era {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(d), &st); err != nil || len(bootID()) == 0 {
		return era{}
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
	default:
		return era{}
	}
	buf := binary.LittleEndian.AppendUint64(nil, dev)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(st.Fsid.Val[0]))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(st.Fsid.Val[1]))
	buf = append(buf, namesKept)
	sum := sha256.Sum256(append(buf, bootID()...))
	return era(sum[:eraLen])
}
