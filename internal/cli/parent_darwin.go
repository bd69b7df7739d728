package cli

import "golang.org/x/sys/unix"

// processAbove returns the name of a process's program and the process that started it.
func processAbove(pid int) (name string, above int, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", 0, err
	}
	return unix.ByteSliceToString(info.Proc.P_comm[:]), int(info.Eproc.Ppid), nil
}
