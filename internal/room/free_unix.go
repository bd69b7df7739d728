//go:build linux || darwin

package room

import "golang.org/x/sys/unix"

// free returns the space that is left where a path is.
func free(path string) (bytes int64, known bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
