//go:build darwin || freebsd

package workspace

import "syscall"

// holdsIndex is whether an index file stays open while the index is used.
const holdsIndex = true

// changeTime returns when the inode changed last.
func changeTime(st *syscall.Stat_t) int64 { return st.Ctimespec.Nano() }
