package osfile

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Network returns the kind of network file system that a directory is on, or "" if it is
// local.
func Network(dir string) string {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	if err != nil || windows.GetDriveType(root) != windows.DRIVE_REMOTE {
		return ""
	}
	return "a network drive"
}
