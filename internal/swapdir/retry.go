package swapdir

import (
	"errors"
	"syscall"
	"time"

	"github.com/stet-dev/stet/internal/osfile"
)

// Failures that pass by themselves on slow or busy file systems are tried again
// maxRetries times, after firstPause, twice that and so on. What another program keeps
// to itself is tried again more often.
const (
	maxRetries = 3
	firstPause = 10 * time.Millisecond
)

// retries returns how often a failed call is tried again.
func retries(err error) int {
	switch {
	case errors.Is(err, osfile.ErrInUse):
		return osfile.Tries
	case transient(err):
		return maxRetries
	}
	return 0
}

func transient(err error) bool {
	for _, e := range []error{syscall.EINTR, syscall.EAGAIN, syscall.EBUSY, syscall.ESTALE, syscall.ETXTBSY, syscall.ENFILE, syscall.EMFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func retry[T any](fn func() (T, error)) (T, error) {
	pause := firstPause
	for try := 0; ; try++ {
		v, err := fn()
		if err == nil || try >= retries(err) {
			return v, err
		}
		time.Sleep(pause)
		pause *= 2
	}
}
