package checkpoint

import (
	"os"

	"github.com/stet-dev/stet/internal/osfile"
)

// identity returns the volume and file index of a directory, or zeros.
func identity(path string) (device, inode uint64) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return 0, 0
	}
	defer root.Close()
	st, err := osfile.StatAt(root, ".")
	if err != nil {
		return 0, 0
	}
	return st.Volume, st.Index
}
