package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// here identifies this boot of the system and the PID namespace. Both are empty
// without /proc.
var here = sync.OnceValue(func() Process {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Process{}
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Process{}
	}
	return Process{Boot: strings.TrimSpace(string(boot)), Namespace: namespace}
})

// processStart returns when a process started, and whether it has ended. The error
// is fs.ErrNotExist if there is no such process.
func processStart(pid int) (start uint64, ended bool, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		// A process of another user may be hidden in /proc.
		if errors.Is(syscall.Kill(pid, 0), syscall.EPERM) {
			return 0, false, fs.ErrPermission
		}
		if errors.Is(err, syscall.ESRCH) { // it ended between open and read
			err = fs.ErrNotExist
		}
		return 0, false, err
	}
	// The second field is the program's name in parentheses, which may hold any byte.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const state, started = 0, 19 // fields 3 and 22
	if len(fields) <= started {
		return 0, false, fmt.Errorf("read the state of process %d: %d fields", pid, len(fields))
	}
	start, err = strconv.ParseUint(string(fields[started]), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("read the start of process %d: %w", pid, err)
	}
	return start, bytes.ContainsAny(fields[state], "ZXx"), nil
}
