package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// RootAllowed returns an error that wraps ErrRootRefused if a directory must not be a
// workspace root by default: the root of the file system, the home directory and the
// directories above it are too large to capture or rewind by accident. It resolves
// links, so another path of the same directory is refused too.
func RootAllowed(root string) error {
	info, err := os.Stat(root)
	if err != nil {
		return fmt.Errorf("open workspace root: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("open workspace root: %w", &os.PathError{Op: "open", Path: root, Err: syscall.ENOTDIR})
	}
	for _, place := range bigPlaces() {
		if other, err := os.Stat(place.path); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%w: %s %s", ErrRootRefused, root, place.what)
		}
	}
	return nil
}

// bigPlace is a directory that must not be captured by accident, and why.
type bigPlace struct{ path, what string }

// bigPlaces lists the root of the file system, the home directory, both as in the
// environment and resolved, and all directories above it.
func bigPlaces() []bigPlace {
	places := []bigPlace{{string(filepath.Separator), "is the root of the file system"}}
	home, err := os.UserHomeDir()
	if err != nil {
		return places
	}
	spellings := []string{filepath.Clean(home)}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		spellings = append(spellings, real)
	}
	for _, dir := range spellings {
		what := "is the home directory"
		for {
			places = append(places, bigPlace{dir, what})
			if dir == filepath.Dir(dir) {
				break
			}
			dir, what = filepath.Dir(dir), "contains the home directory"
		}
	}
	return places
}
