//go:build unix && !linux

package osfile

import "golang.org/x/sys/unix"

// Network returns the kind of network file system that a directory is on, or "" if it is
// local.
func Network(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || uint64(st.Flags)&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}
