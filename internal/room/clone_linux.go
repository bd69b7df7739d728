package room

import (
	"os"

	"golang.org/x/sys/unix"
)

// clone makes an empty file share the content of another until one of them is written. It
// returns errDiffers if the other one is not a file of that size.
func clone(to *os.File, from string, size int64) error {
	// It may be anything by now, such as a FIFO without a writer.
	src, err := os.OpenFile(from, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return errDiffers
	}
	defer src.Close()
	if info, err := src.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != size {
		return errDiffers
	}
	return unix.IoctlFileClone(int(to.Fd()), int(src.Fd()))
}
