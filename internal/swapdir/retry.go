package swapdir

import (
	"errors"
	"syscall"
	"time"
)

// Failures that pass by themselves on slow or busy file systems are tried again
// maxRetries times, after firstPause, twice that and so on.
const (
	maxRetries = 3
	firstPause = 10 * time.Millisecond
)

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
		if err == nil || try == maxRetries || !transient(err) {
			return v, err
		}
		time.Sleep(pause)
		pause *= 2
	}
}
