// Package private reads files that hold secrets, and refuses those that others can
// read.
//
//	token, err := private.ReadFile("/var/lib/stet/token")
//
// It promises that the file whose mode was looked at is the one that is read, and
// that the error says how to mend it.
package private

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/stet-dev/stet/fault"
)

// ErrExposed says that others can read a file that holds a secret.
var ErrExposed = fault.New(fault.Denied, "others can read it")

// ReadFile reads a file of any size that only its owner can read.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err == nil {
		err = Check(path, info)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// Check refuses the file of a secret that its group or others can read or write. As
// elsewhere, the group may read a file that belongs to root: whoever runs this could
// not change its mode, and root gave it to the group. Pipes and the like have no
// mode that says something. On systems without modes everything passes.
func Check(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if !hasModes || !mode.IsRegular() || mode.Perm()&0o077 == 0 || mode.Perm()&0o037 == 0 && ofRoot(info) {
		return nil
	}
	return fmt.Errorf("%s: %w (mode %04o); run 'chmod 600 %s'", path, ErrExposed, mode.Perm(), quote(path))
}

// quote makes a path one word of a shell, where that is needed.
func quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,") == "" && path != "" {
		return path
	}
	return "\"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(path) + "\""
}
