//go:build unix && (portable || !linux)

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

func identify(_ *os.Root, _ string, info fs.FileInfo) (identity, error) { return identityOf(info), nil }

func identifyOpen(_ *os.File, info fs.FileInfo) (identity, error) { return identityOf(info), nil }

func identityOf(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{ctime: info.ModTime().UnixNano(), uid: -1}
	}
	return identity{ino: st.Ino, dev: uint64(st.Dev), links: uint64(st.Nlink), ctime: changeTime(st), uid: int64(st.Uid)}
}
