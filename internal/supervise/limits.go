package supervise

import (
	"fmt"
	"os"
	"strings"

	"github.com/stet-dev/stet/fault"
)

// ErrNoLimits says that the system cannot limit what a command takes.
var ErrNoLimits = fault.New(fault.Unsupported, "limits of commands need Linux")

// Limits bound what a command and the processes that it starts may take. Zero means no limit.
type Limits struct {
	// Memory is how many bytes of private memory each process may have.
	Memory uint64
	// FileSize is how large each file may become that they write, in bytes.
	FileSize uint64
	// Processes is how many processes and threads the user may have in all while they start
	// new ones. The system does not hold root to it.
	Processes uint64
}

// LimitedVerb is the first argument by which a program that runs commands with limits is
// called again: it must then call Become with the others. Limits hold for the process that
// sets them, and only a process of its own can set them before the command begins.
const LimitedVerb = "__limited"

const limitsForm = "memory=%d,file=%d,processes=%d"

// limited returns the arguments that start a command with limits.
func (l Limits) limited(path string, args []string) (program string, out []string, err error) {
	if program, err = os.Executable(); err != nil {
		return "", nil, err
	}
	text := fmt.Sprintf(limitsForm, l.Memory, l.FileSize, l.Processes)
	return program, append([]string{program, LimitedVerb, text, path}, args...), nil
}

// Become sets limits and becomes the command that follows them in the arguments of
// LimitedVerb. It returns only if that fails.
func Become(args []string) error {
	var l Limits
	if len(args) < 3 {
		return fmt.Errorf("%s: arguments are missing", LimitedVerb)
	}
	if n, err := fmt.Sscanf(args[0], limitsForm, &l.Memory, &l.FileSize, &l.Processes); err != nil || n != 3 || strings.Contains(args[0], " ") {
		return fmt.Errorf("%s: %q are no limits", LimitedVerb, args[0])
	}
	return become(l, args[1], args[2:])
}
