//go:build unix

package main

import (
	"os"
	"syscall"
)

// replace turns this process into another program, so that the agent sees and ends one
// process.
func replace(program string) error {
	return syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
}
