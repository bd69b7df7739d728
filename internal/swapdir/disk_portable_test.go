//go:build portable || !(linux || darwin || freebsd)

package swapdir

import "os"

// stagedFileOf returns a file to be written as a staged one.
func stagedFileOf(file *os.File) *stagedFile {
	return &stagedFile{d: &disk{}, file: file, path: file.Name()}
}
