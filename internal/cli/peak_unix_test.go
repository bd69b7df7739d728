//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// runPeak runs a command and returns the most memory that it had, in bytes. What the system
// says at the end is only the fallback: Linux counts what the process had before it became
// the command, which is the memory of the tests.
func runPeak(cmd *exec.Cmd) (memory int64, output []byte, err error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	status := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status")
	for {
		select {
		case err := <-ended:
			if memory == 0 {
				memory = peak(cmd.ProcessState)
			}
			return memory, out.Bytes(), err
		case <-time.After(time.Millisecond):
		}
		data, _ := os.ReadFile(status) // gone, or not Linux
		for line := range bytes.Lines(data) {
			var kib int64
			if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); n == 1 {
				memory = max(memory, kib<<10)
			}
		}
	}
}

// peak is the most memory that a process had, in bytes.
func peak(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}
