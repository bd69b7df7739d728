package cli

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// standBack gives this process the lowest priority for processors and disk. On Linux
// priorities belong to threads, and new threads inherit them. Errors are harmless.
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
