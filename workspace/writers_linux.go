//go:build !portable

package workspace

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// writers asks the kernel whether a process has the file open for writing or mapped:
// it grants a read lease only on files without writers. The lease is released at
// once; a process that opens the file in between waits that long. Only the owner and
// root can get leases, on local file systems.
func (f *openedFile) writers() writing {
	// Use a signal that is ignored by default: SIGIO, which is sent to the holder
	// otherwise, ends programs that do not expect it.
	if _, err := unix.FcntlInt(uintptr(f.fd), unix.F_SETSIG, int(unix.SIGURG)); err != nil {
		return notKnown
	}
	switch _, err := unix.FcntlInt(uintptr(f.fd), unix.F_SETLEASE, unix.F_RDLCK); err {
	case nil:
		_, _ = unix.FcntlInt(uintptr(f.fd), unix.F_SETLEASE, unix.F_UNLCK) // closing the file also releases it
		return nobody
	case unix.EAGAIN:
		return somebody
	}
	return notKnown
}

// listWritten returns the inodes of files that processes have open for writing, or
// mapped writable and shared. It sees the processes that the caller may inspect:
// those of the same user, or all for root. It ignores the device, because some file
// systems report a different one there: a false match only causes another read.
func listWritten() map[uint64]struct{} {
	inos := map[uint64]struct{}{}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return inos
	}
	for _, p := range procs {
		if _, err := strconv.ParseUint(p.Name(), 10, 32); err != nil {
			continue
		}
		addOpen(inos, "/proc/"+p.Name()+"/fd")
		if maps, err := os.ReadFile("/proc/" + p.Name() + "/maps"); err == nil {
			addMapped(inos, maps)
		}
	}
	return inos
}

// addOpen adds the files that the descriptors in a directory write to. The mode of a
// descriptor's link shows how it was opened.
func addOpen(inos map[uint64]struct{}, dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return
	}
	var st unix.Stat_t
	for _, name := range names {
		if unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&0o200 == 0 {
			continue
		}
		if unix.Fstatat(int(d.Fd()), name, &st, 0) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			inos[st.Ino] = struct{}{}
		}
	}
}

// addMapped adds the files that a maps file lists as writable and shared. A line is:
// addresses, permissions, offset, device, inode, path.
func addMapped(inos map[uint64]struct{}, maps []byte) {
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line)
		if len(f) < 5 || len(f[1]) < 4 || f[1][1] != 'w' || f[1][3] != 's' {
			continue
		}
		if ino, err := strconv.ParseUint(string(f[4]), 10, 64); err == nil && ino != 0 {
			inos[ino] = struct{}{}
		}
	}
}
