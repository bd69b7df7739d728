// Package private reads files that hold secrets, and rejects files that others can
// read.
//
//	token, err := private.ReadFile("/var/lib/stet/token")
//
// It reads the same file whose mode it checked, and the error says how to fix the
// mode.
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

// Check rejects a secret file that its group or others can read or write. The group
// may read a file that belongs to root: the caller could not change its mode, and
// root gave it to the group. The mode of pipes and the like is ignored. On systems
// without modes everything passes.
func Check(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if !hasModes || !mode.IsRegular() || mode.Perm()&0o077 == 0 || mode.Perm()&0o037 == 0 && ofRoot(info) {
		return nil
	}
	return fmt.Errorf("%s: %w (mode %04o); run 'chmod 600 %s'", path, ErrExposed, mode.Perm(), quote(path))
}

// quote quotes a path for a shell if needed.
func quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,") == "" && path != "" {
		return path
	}
	return "\"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(path) + "\""
}
