package supervise

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// CanLimit reports whether the system can limit what a command takes.
const CanLimit = true

func become(l Limits, path string, args []string) error {
	for _, one := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_DATA, l.Memory}, // not the address space, of which some languages reserve far more than they use
		{unix.RLIMIT_FSIZE, l.FileSize},
		{unix.RLIMIT_NPROC, l.Processes},
	} {
		if one.most == 0 {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(one.resource, &now); err != nil {
			return fmt.Errorf("read limits: %w", err)
		}
		most := min(one.most, now.Max) // nobody but root can raise it
		if err := unix.Setrlimit(one.resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
	}
	return syscall.Exec(path, args, os.Environ())
}
