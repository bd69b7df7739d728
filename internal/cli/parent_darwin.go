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

// processesAbove returns, for every running process, the one that started it.
func processesAbove() (map[int]int, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	const zombie = 5 // SZOMB
	out := make(map[int]int, len(list))
	for i := range list {
		if list[i].Proc.P_stat != zombie {
			out[int(list[i].Proc.P_pid)] = int(list[i].Eproc.Ppid)
		}
	}
	return out, nil
}
