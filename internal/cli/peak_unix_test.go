//go:build unix

package cli

import (
	"os"
	"runtime"
	"syscall"
)

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
