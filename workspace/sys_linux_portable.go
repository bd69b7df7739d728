//go:build linux && portable

package workspace

import "syscall"

// holdsIndex is whether an index file stays open while the index is used. An open file
// cannot be replaced on every system: the index is read into memory, and its file is
// replaced as a whole.
const holdsIndex = false

// changeTime returns when the inode changed last.
func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
