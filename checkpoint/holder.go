package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockHolder is what a process writes into the lock file of a workspace while it
// holds the lock, so that others can name it.
type lockHolder struct {
	Process
	Since time.Time
}

// sign writes this process into a lock file that it holds, and returns a function
// that removes it again. Only people read it, so errors do not matter.
func (s *Service) sign(path string) (erase func()) {
	command := s.opts.Command
	if command == "" {
		command = filepath.Base(os.Args[0])
	}
	if me, ok := ProcessOf(os.Getpid(), command); ok {
		if data, err := json.Marshal(lockHolder{me, s.opts.Now()}); err == nil {
			_ = os.WriteFile(path, data, 0o600)
		}
	}
	return func() { _ = os.Truncate(path, 0) }
}

// busyBy returns ErrBusy with the process that holds a lock file. A file that is empty,
// half written or left by a process that has ended names none.
func busyBy(path string) error {
	data, err := os.ReadFile(path)
	var by lockHolder
	if err != nil || json.Unmarshal(data, &by) != nil || by.Life() != Alive {
		return ErrBusy
	}
	return fmt.Errorf("%w: %s (process %d) has used it since %s", ErrBusy, by.Command, by.PID, by.Since.Format(time.DateTime))
}
