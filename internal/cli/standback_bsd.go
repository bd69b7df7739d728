//go:build darwin || freebsd

package cli

import "golang.org/x/sys/unix"

// standBack gives this process the lowest priority. Errors are harmless.
func standBack() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) }
