package cli

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// standBack lets everybody else use the processors and the disk first. Linux knows
// priorities of threads only; threads that come later are as those that make them.
// A refusal does no harm.
func standBack() {
	const idle = 3 << 13 // IOPRIO_CLASS_IDLE
	const thread = 1     // IOPRIO_WHO_PROCESS
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		_ = unix.Setpriority(unix.PRIO_PROCESS, id, 19)
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, thread, uintptr(id), idle)
	}
}
