// Package osfile does with files what package os leaves to each system: it locks them,
// makes names durable, and replaces files that others may have open.
//
// Where a system lets a program keep a file to itself, as Windows does, calls that fail for
// that reason are tried again for some seconds, because scanners and indexers hold every new
// file for a moment. What still fails wraps ErrInUse:
//
//	err := osfile.Rename(made, path) // over a file that another process may be reading
//	err = osfile.SyncDir(filepath.Dir(path))
//
// It leaves to others what is written, and in which order.
package osfile

import (
	"errors"
	"os"
	"time"

	"github.com/stet-dev/stet/fault"
)

// ErrInUse says that another program keeps a file to itself.
var ErrInUse = fault.Named(fault.Busy, "file-in-use", "is in use by another program")

// A call that fails because a file is in use is tried again Tries times, after FirstPause,
// twice that and so on: for five seconds.
const (
	Tries      = 9
	FirstPause = 10 * time.Millisecond
)

// Open is os.Open, and tried again while another program replaces the file or keeps it to
// itself.
func Open(path string) (f *os.File, err error) {
	err = Try(func() error {
		f, err = os.Open(path)
		return err
	})
	return f, err
}

// Remove is os.Remove, and tried again while another program has the file open.
func Remove(path string) error { return Try(func() error { return os.Remove(path) }) }

// Try calls fn again while its error says that a file is in use. The last error then wraps
// ErrInUse.
func Try(fn func() error) error {
	pause := FirstPause
	for try := 0; ; try++ {
		err := InUse(fn())
		if try == Tries || !errors.Is(err, ErrInUse) {
			return err
		}
		time.Sleep(pause)
		pause *= 2
	}
}
