package checkpoint

import (
	"errors"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// here identifies this boot of the system. There is only one namespace.
var here = sync.OnceValue(func() Process {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return Process{}
	}
	return Process{Boot: boot}
})

// processStart returns when a process started, and whether it has ended. The error
// is fs.ErrNotExist if there is no such process.
func processStart(pid int) (start uint64, ended bool, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) || err == nil && int(info.Proc.P_pid) != pid {
		return 0, false, fs.ErrNotExist
	}
	if err != nil {
		return 0, false, err
	}
	const zombie = 5 // SZOMB
	return uint64(info.Proc.P_starttime.Nano()), info.Proc.P_stat == zombie, nil
}
