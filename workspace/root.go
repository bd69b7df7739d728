package workspace

import (
	"fmt"
	"os"
	"path/filepath"
)

// RootAllowed reports whether a directory may be a workspace root without
// someone insisting on it, with an error that wraps ErrRootRefused if not: the
// file system's root, the home directory and whatever contains it hold a whole
// life, and nobody wants to capture or rewind that by accident. Links are
// resolved, so that another spelling of the same directory is refused too.
func RootAllowed(root string) error {
	info, err := os.Stat(root)
	if err != nil {
		return fmt.Errorf("open workspace root: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("open workspace root %s: not a directory", root)
	}
	for _, place := range bigPlaces() {
		if other, err := os.Stat(place); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%w: %s is %s", ErrRootRefused, root, place)
		}
	}
	return nil
}

// bigPlaces lists the home directory, in the spelling of the environment and
// resolved, and all directories above it.
func bigPlaces() []string {
	places := []string{string(filepath.Separator)}
	home, err := os.UserHomeDir()
	if err != nil {
		return places
	}
	spellings := []string{filepath.Clean(home)}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		spellings = append(spellings, real)
	}
	for _, dir := range spellings {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			places = append(places, dir)
		}
		places = append(places, dir)
	}
	return places
}
